"""The third stage: the text is cut into units. Pure."""
