"""Drills of a file that is translated: servers killed and stopped under it, and its disk full."""
