"""Saved aligners of the server, which link words of given texts in place of a model."""
