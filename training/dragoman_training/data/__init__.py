"""Corpora, vocabularies and batches: text to token ids."""
