"""Lexical shortlists: what they are made of, and the graphs that decode with them."""
