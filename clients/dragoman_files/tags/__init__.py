"""Texts with tags in them: how files write them, and how they travel."""
