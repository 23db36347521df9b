"""How good bundles are by kind of text: test sets, words, interface strings, hard texts; and the time."""

from benchmarks.scenarios.shipped.comparison import command

__all__ = ["command"]
