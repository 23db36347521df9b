"""Measurements of speed, each one command: whatever is compared is measured side by side in one run."""
