"""The third stage: the text is cut into units that fit the model. Pure."""
