"""Checkpoints that decode together: one, or the members of an ensemble."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from dragoman_training.checkpoint import Checkpoint, CheckpointError, load_checkpoint, vocabulary_shape
from dragoman_training.models import Seq2Seq
from dragoman_training.models.ensemble import Ensemble
from dragoman_training.recipe.settings import DecodingConfig


def load_members(paths: Sequence[Path]) -> list[Checkpoint]:
    """Reads checkpoints of one vocabulary and one pair of languages.

    Raises CheckpointError where one is no checkpoint or does not fit the first, OSError for none.
    """
    first, *others = members = [load_checkpoint(path) for path in paths]
    for path, other in zip(paths[1:], others, strict=True):
        if not other.has_vocabulary_of(first):
            raise CheckpointError(
                f"{path} has another vocabulary than {paths[0]}: members of an ensemble are trained on one "
                "corpus, with one [vocabulary] in their recipes"
            )
        theirs, ours = other.recipe.data.direction, first.recipe.data.direction
        if theirs != ours:
            raise CheckpointError(f"{path} translates {theirs}, and {paths[0]} {ours}")
    if others and not first.recipe.data.has_source:
        raise CheckpointError(f"{paths[0]} is a language model, and no ensembles are made of these")
    return members


def as_one(members: Sequence[Checkpoint]) -> Seq2Seq:
    """The model of one checkpoint, or the ensemble of several, in evaluation mode."""
    first = members[0]
    if len(members) == 1:
        return first.model
    shape = vocabulary_shape(first.source_tokenizer, first.target_tokenizer)
    return Ensemble([member.model for member in members], shape).eval()


def decoding_of(members: Sequence[Checkpoint]) -> DecodingConfig:
    """How they decode together: as the first one says, within the lengths that all are trusted with."""
    ways = [member.recipe.decoding for member in members]
    return dataclasses.replace(
        ways[0],
        max_source_tokens=min(way.max_source_tokens for way in ways),
        max_output_tokens=min(way.max_output_tokens for way in ways),
    )
