"""The engine beside CTranslate2, Marian and Mozilla's engine on the same weights, in one table."""

from benchmarks.scenarios.peers.comparison import command

__all__ = ["command"]
