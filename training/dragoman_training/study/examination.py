"""One checkpoint examined: it translates the test set, and says where it looked."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.looking import Look, look_along, looks_somewhere
from dragoman_training.models import Luong
from dragoman_training.study.findings import Example, Findings, centres_of, sharpness_of
from dragoman_training.study.inputs import StudySet
from dragoman_training.study.scores import Scorer
from dragoman_training.translator import Translator

BLOCK_SENTENCES = 64
"""Sentences translated at once: the step of the progress bar."""


def examine(
    label: str,
    path: Path,
    test_set: StudySet,
    *,
    beam_size: int,
    length_penalty: float,
    device: torch.device,
    advance: Callable[[int], None],
) -> Findings:
    """Translates the test set and looks at the attention along the model's own translations.

    `advance` is told how many sentences are done. Raises CheckpointError or OSError.
    """
    checkpoint = load_checkpoint(path)
    model = checkpoint.model.to(device)
    decoding = dataclasses.replace(
        checkpoint.recipe.decoding, beam_size=beam_size, length_penalty=length_penalty
    )
    translator = Translator(model, checkpoint.source_tokenizer, checkpoint.target_tokenizer, decoding)
    sources = translator.encode(test_set.sources)
    attends = looks_somewhere(model)
    tokens: dict[int, tuple[int, ...]] = {}
    looks: dict[int, Look] = {}
    by_length = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    for start in range(0, len(by_length), BLOCK_SENTENCES):
        numbers = by_length[start : start + BLOCK_SENTENCES]
        found = translator.search([sources[number] for number in numbers])
        tokens |= dict(zip(numbers, (hypothesis.tokens for hypothesis in found), strict=True))
        if attends:
            seen = _looks(checkpoint, [sources[n] for n in numbers], [tokens[n] for n in numbers])
            looks |= dict(zip(numbers, seen, strict=True))
        advance(len(numbers))
    target = checkpoint.target_tokenizer
    translations = tuple(target.decode(tokens[number]).text for number in range(len(sources)))
    language = checkpoint.recipe.data.target_language
    in_order = [looks[number] for number in sorted(looks)]
    return Findings(
        label=label,
        recipe=checkpoint.recipe,
        progress=checkpoint.progress,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabulary=target.model,
        translations=translations,
        cased=Scorer(translations, test_set.references, lowercase=False, target_language=language),
        lower_cased=Scorer(translations, test_set.references, lowercase=True, target_language=language),
        sharpness=sharpness_of(in_order) if attends else None,
        centres=centres_of(in_order, model.config.window) if isinstance(model, Luong) else None,
        examples=tuple(
            Example(
                source_pieces=_pieces(checkpoint.source_tokenizer, sources[number]),
                target_pieces=_pieces(target, [*tokens[number], target.eos_id]),
                look=looks[number],
            )
            for number in test_set.examples
            if attends
        ),
    )


def _looks(
    checkpoint: Checkpoint, sources: Sequence[Sequence[int]], tokens: Sequence[Sequence[int]]
) -> list[Look]:
    target = checkpoint.target_tokenizer
    return look_along(
        checkpoint.model,
        sources,
        [[*each, target.eos_id] for each in tokens],
        pad_ids_of_sides=(checkpoint.source_tokenizer.pad_id, target.pad_id),
        bos_id=target.bos_id,
    )


def _pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(tokenizer.piece(id_) for id_ in ids)
