"""Alignments and attention as pictures: in a terminal, and in files."""
