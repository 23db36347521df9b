"""Layers that several model families share."""
