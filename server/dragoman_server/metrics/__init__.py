"""Prometheus metrics of translation, of the processes and of the log."""
