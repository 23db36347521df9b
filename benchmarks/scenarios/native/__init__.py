"""Marian's own files of real shape: what an import takes, and words a second beside their own engines."""

from benchmarks.scenarios.native.comparison import command

__all__ = ["command"]
