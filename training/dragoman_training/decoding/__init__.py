"""Batched beam search in PyTorch, and checkpoints as systems that translate lines."""
