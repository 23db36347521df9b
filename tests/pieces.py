"""Tokenizers of sentencepiece that are small enough to be trained in a moment."""

import io
from collections.abc import Iterable

import sentencepiece

BESIDE_PAD = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
"""The special ids of our own models; sentencepiece's own have no padding."""


def train_pieces(lines: Iterable[str], size: int, model_type: str = "char", **options: object) -> bytes:
    """The serialised model of that many pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=model_type,
        vocab_size=size,
        minloglevel=2,
        **options,
    )
    return model.getvalue()
