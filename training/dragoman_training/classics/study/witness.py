"""Where a model with global attention looks along local-p's translations: what local-p is held against.

Local-p's own weights tell nothing of how well it predicts, as they are its window's.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.classics.study.examination import BLOCK_SENTENCES, attention_along_tokens
from dragoman_training.classics.study.findings import Findings, Witness
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.models import BahdanauConfig, LuongConfig


def find_witness(local_p: Findings, findings: Sequence[Findings], test_set: StudySet) -> Findings | None:
    """Of the recurrent models with one global attention and local-p's vocabularies, the best by BLEU."""
    fitting = [
        finding
        for finding in findings
        if _looks_everywhere(finding) and finding.vocabularies == local_p.vocabularies
    ]
    return max(fitting, key=lambda finding: finding.cased.score(test_set.own).bleu, default=None)


def _looks_everywhere(findings: Findings) -> bool:
    config = findings.recipe.model
    return isinstance(config, BahdanauConfig) or (
        isinstance(config, LuongConfig) and config.attention == "global"
    )


def with_witness(
    local_p: Findings,
    label: str,
    path: Path,
    test_set: StudySet,
    *,
    device: torch.device,
    advance: Callable[[int], None],
) -> Findings:
    """Local-p's findings, with where the model of that label and file looks along its translations.

    `advance` is told how many sentences are done. Raises CheckpointError or OSError.
    """
    checkpoint = load_checkpoint(path)
    checkpoint.model.to(device)
    tokenizer = checkpoint.source_tokenizer
    sources = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_ids(test_set.sources)]
    most = []
    for start in range(0, len(test_set.own), BLOCK_SENTENCES):
        numbers = test_set.own[start : start + BLOCK_SENTENCES]
        attentions = attention_along_tokens(
            checkpoint, [sources[n] for n in numbers], [local_p.tokens[n] for n in numbers]
        )
        most += [attention.weights_UT[:-1].argmax(axis=1) + 1 for attention in attentions]
        advance(len(numbers))
    assert local_p.centres is not None
    witness = Witness(label=label, most_looked_at=np.concatenate(most).astype(np.float32))
    return dataclasses.replace(local_p, centres=dataclasses.replace(local_p.centres, witness=witness))
