"""Drills: real servers under faults, and whether each promise holds. `python -m benchmarks.drill NAME`."""
