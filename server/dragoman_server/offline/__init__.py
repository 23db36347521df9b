"""A bundle decoded in the caller's own process, by the engine that a server has, without a server."""
