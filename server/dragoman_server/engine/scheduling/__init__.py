"""Decides which sentences run. Pure: knows no clock, no threads and no arrays of a model."""
