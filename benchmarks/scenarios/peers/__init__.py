"""The engine beside CTranslate2 on the same weights: tokens a second, latency of callers, or memory."""

from benchmarks.scenarios.peers.comparison import command

__all__ = ["command"]
