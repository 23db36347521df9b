"""The models of a server: found, loaded, exchanged, and unloaded. Knows no gRPC."""
