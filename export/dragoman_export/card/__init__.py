"""The model card of a bundle, and the quality that stands on it."""
