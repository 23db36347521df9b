"""The engine's rules of scheduling in virtual time: exact, and the same on every machine.

One engine, a workload, and costs as measured on the shipped model. Time is added up, not waited for. A run on
a real machine varies by more than most rules differ by.
"""

from benchmarks.scenarios.policy.comparison import command

__all__ = ["command"]
