"""What of a text comes through a model's translation, with protection and without, and what it costs."""

from benchmarks.scenarios.text.comparison import command

__all__ = ["command"]
