"""Findings without a model, from translations that are given."""

from collections.abc import Sequence
from typing import Any

from dragoman_training.classics.study.examination import Findings, Sharpness
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.classics.study.scores import Scorer
from dragoman_training.models import ModelConfig, PlainConfig
from dragoman_training.recipe.data import DataConfig
from dragoman_training.recipe.settings import Recipe

CORPUS = {f"{split}_{side}": ("text",) for split in ("train", "valid") for side in ("source", "target")}


def made_findings(
    label: str,
    translations: Sequence[str],
    references: Sequence[str],
    *,
    config: ModelConfig | None = None,
    attends: bool = True,
    **others: Any,
) -> Findings:
    """What a model found that says these translations; `others` take the place of what else is there."""
    scorer = Scorer(translations, references, lowercase=False, target_language="en")
    data = DataConfig(source_language="de", target_language="en", **CORPUS)
    parts: dict[str, Any] = {
        "recipe": Recipe(name=label, data=data, model=config or PlainConfig()),
        "progress": {},
        "num_parameters": 1,
        "vocabularies": (b"source", b"target"),
        "longest_trained": None,
        "tokens": (),
        "head": None,
        "sharpness": Sharpness(largest=1, entropy_bits=0, end_share=0, total=1) if attends else None,
        "centres": None,
        "examples": (),
    }
    return Findings(
        label=label, translations=tuple(translations), cased=scorer, lower_cased=scorer, **{**parts, **others}
    )


def made_set(
    sources: Sequence[str], references: Sequence[str], *, num_sentences: int | None = None, join: int = 1
) -> StudySet:
    """A test set without examples, of which the first `num_sentences` are its own, or all of them."""
    return StudySet(
        sources=tuple(sources),
        references=tuple(references),
        num_sentences=len(sources) if num_sentences is None else num_sentences,
        join=join,
        examples=(),
    )
