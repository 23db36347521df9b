"""The way to a server: its channel, deadlines, and what to do where it can't be reached."""
