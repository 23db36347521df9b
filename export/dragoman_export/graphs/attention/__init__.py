"""Attention as graphs compute it: over a source, over a past, in a window, and by kernels for CPUs."""
