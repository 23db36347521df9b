"""The second stage: everything in a text that must be kept is marked. Pure."""
