"""Beam search of a batch: what each step chooses, what has ended, and how hypotheses are ranked."""
