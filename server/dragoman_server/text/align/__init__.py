"""The last stage: links between the words of a text and its translation. Pure."""
