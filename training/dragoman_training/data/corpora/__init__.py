"""Corpora of any size: read block by block, tokenized by all cores, kept as arrays on disk."""
