"""MarianMT checkpoints of Hugging Face, such as OPUS-MT's, as what is exported."""

from dragoman_export.from_hf.checkpoint import load_marian
from dragoman_export.from_hf.errors import MarianError

__all__ = ["MarianError", "load_marian"]
