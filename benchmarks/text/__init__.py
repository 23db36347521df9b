"""What of a text comes through a model's translation, with protection and without."""
