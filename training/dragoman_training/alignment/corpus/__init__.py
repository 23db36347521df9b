"""Sentence pairs as arrays of words, for word alignment."""
