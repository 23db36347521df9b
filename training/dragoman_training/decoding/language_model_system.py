"""A checkpoint as a language model, for `dragoman evaluate --checkpoint` without a source."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus
from dragoman_training.device import choose_device
from dragoman_training.run.validation import perplexity


class CheckpointLanguageModel:
    """Measures text with PyTorch, each line one sentence."""

    def __init__(self, checkpoint: Checkpoint, location: str, device: torch.device) -> None:
        self._model = checkpoint.model.to(device)
        self._tokenizer = checkpoint.target_tokenizer
        self.description = f"{location} with PyTorch in fp32 on {device}"

    def perplexity(self, lines: list[str]) -> tuple[float, int, int]:
        """Perplexity per token, and the numbers of tokens, ends of sentences included, and of sentences.

        As validation counts: without sentences of which the vocabulary's normalization leaves nothing. Raises
        ValueError where none is left.
        """
        corpus = Corpus([""] * len(lines), lines)
        pairs = Pairs(corpus, self._tokenizer, self._tokenizer, max_tokens=None)
        if not len(pairs):
            raise ValueError("the vocabulary's normalization leaves nothing of its lines")
        return perplexity(self._model, pairs), pairs.num_target_tokens(range(len(pairs))), len(pairs)


@contextmanager
def open_checkpoint_language_model(location: str, *, device: str) -> Iterator[CheckpointLanguageModel]:
    """Opens a checkpoint file. Raises ValueError where it is not of a language model."""
    checkpoint = load_checkpoint(Path(location))
    if checkpoint.recipe.data.has_source:
        raise ValueError(f"{location} translates, and is no language model; give it --source to translate")
    yield CheckpointLanguageModel(checkpoint, location, choose_device(device))
