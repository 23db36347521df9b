"""Imported models decoded in NumPy, in float64: what the graphs of a bundle are held against."""
