"""A training run: its loop, its loss, its steps, and what a person sees of it."""
