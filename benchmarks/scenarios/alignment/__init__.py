"""Word aligners and models' attention on gold alignments: error rate, time, memory, beside other toolkits."""

from benchmarks.scenarios.alignment.comparison import command

__all__ = ["command"]
