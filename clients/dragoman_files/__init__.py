"""Formats of files: where the texts of a file stand, and how one is written there.

Owns the tag language too, in which a text carries the markup within it. Must not know how texts are
translated, nor any other package of ours.
"""
