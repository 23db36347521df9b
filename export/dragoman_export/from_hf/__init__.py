"""Checkpoints of Hugging Face, MarianMT's, M2M100's and NLLB's, as what is exported."""

from dragoman_export.from_hf.checkpoint import load_checkpoint
from dragoman_export.from_hf.errors import CheckpointError

__all__ = ["CheckpointError", "load_checkpoint"]
