"""Checkpoints for `dragoman evaluate --checkpoint`: what translates lines, and what has a perplexity."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

from dragoman_training.checkpoint import Checkpoint, as_one, decoding_of, load_checkpoint, load_members
from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus
from dragoman_training.decoding.translator import Translator
from dragoman_training.device import choose_device
from dragoman_training.run.validation import perplexity


class CheckpointSystem:
    """Translates lines with PyTorch, each line one sentence."""

    def __init__(self, translator: Translator, description: str, length_penalty: float) -> None:
        self._translator = translator
        self.description = description
        self.details: Mapping[str, str | float | None]
        self.details = {"precision": "fp32", "shortlist": False, "length_penalty": length_penalty}

    def translate(self, lines: list[str]) -> list[str]:
        """One translation a line; an empty line has an empty one."""
        return self._translator.translate(lines)


@contextmanager
def open_checkpoint_system(
    *locations: str,
    source_language: str | None,
    target_language: str | None,
    beam_size: int,
    length_penalty: float | None = None,
    device: str,
    precision: str,
    shortlist: bool | None = None,
) -> Iterator[CheckpointSystem]:
    """Opens a checkpoint file, or several as an ensemble, decoded by the recipe of the first.

    Raises ValueError for languages, devices or precisions they do not have, or members that do not fit.
    """
    members = load_members([Path(location) for location in locations])
    first = members[0]
    data = first.recipe.data
    location = " + ".join(locations)
    if not data.has_source:
        reason = f"{location} is a language model and translates nothing"
        raise ValueError(f"{reason}; leave --source out to measure perplexity")
    for wanted, own in ((source_language, data.source_language), (target_language, data.target_language)):
        if wanted is not None and wanted.lower() != own.lower():
            raise ValueError(f"{location} translates {data.direction}")
    if precision not in ("auto", "fp32"):
        raise ValueError(f"a checkpoint is evaluated in fp32; {precision} needs an exported bundle")
    if shortlist is not None:
        raise ValueError("a checkpoint has no shortlist; an exported bundle may")
    chosen = choose_device(device)
    decoding = dataclasses.replace(decoding_of(members), beam_size=beam_size)
    if length_penalty is not None:
        decoding = dataclasses.replace(decoding, length_penalty=length_penalty)
    model = as_one(members).to(chosen)
    translator = Translator(model, first.source_tokenizer, first.target_tokenizer, decoding)
    description = f"{location} with PyTorch in fp32 on {chosen}"
    yield CheckpointSystem(translator, description, decoding.length_penalty)


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
