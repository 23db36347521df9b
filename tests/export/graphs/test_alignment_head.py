"""The head of a Transformer whose weights its bundle gives out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle import Tokenizer
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, make_graphs, make_members, open_stepper

from dragoman_export.bundle_files import write_graphs
from dragoman_export.exporter import with_alignment_head
from dragoman_export.trained import TrainedModel, subject_of
from dragoman_training.alignment.head import look_through
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus
from dragoman_training.models.transformer import AlignmentHead, Transformer, TransformerConfig

CORPUS = Corpus(["ab cd", "cd", "ef ab", "gh", "ab"] * 4, ["BA DC", "DC", "FE BA", "HG", "BA"] * 4)


def test_the_best_head_is_chosen_for_what_is_exported_alone(tokenizer: Tokenizer) -> None:
    transformer = make_checkpoint(CONFIGS["transformer"], tokenizer, tokenizer)
    lines: list[str] = []
    subject = subject_of([transformer])
    chosen = with_alignment_head(subject, CORPUS, lines.append)
    assert isinstance(subject.model, TrainedModel)
    assert isinstance(chosen.model, TrainedModel)
    assert isinstance(chosen.model.model, Transformer)
    assert isinstance(transformer.model, Transformer)
    assert transformer.model.alignment_head is None
    (line,) = lines
    head = chosen.model.model.alignment_head
    assert head is not None
    assert f"alignments: head {head.head + 1} of decoder layer {head.layer + 1}, of the token" in line
    assert ("read" in line) == chosen.attention_of_input
    assert replace(chosen, model=subject.model, attention_of_input=False) == subject


NONE = "alignments: no training pair is short enough to choose a head by; the last layer's mean it is"


@pytest.mark.parametrize(
    ("family", "corpus", "told"),
    [
        ("luong", CORPUS, []),
        ("plain", CORPUS, []),
        ("ensemble", CORPUS, []),
        ("transformer", Corpus(["ab" * 60], ["BA"]), [NONE]),
    ],
)
def test_models_stay_as_they_are_where_there_are_no_heads_or_nothing_to_choose_them_by(
    tokenizer: Tokenizer, family: str, corpus: Corpus, told: list[str]
) -> None:
    lines: list[str] = []
    subject = subject_of(make_members(family, tokenizer))
    assert with_alignment_head(subject, corpus, lines.append) is subject
    assert lines == told


def test_the_head_of_a_middle_layer_is_not_taken_for_another(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = CONFIGS["transformer"]
    assert isinstance(config, TransformerConfig)
    checkpoint = make_checkpoint(replace(config, decoder_layers=3), tokenizer, tokenizer)
    assert isinstance(checkpoint.model, Transformer)
    checkpoint.model.alignment_head = AlignmentHead(layer=1, head=2)
    write_graphs(make_graphs(checkpoint.model, ["fp32"])["fp32"], tmp_path / "fp32")
    found_UT, look_LHUT = both_looks(checkpoint, tmp_path / "fp32")
    assert np.argwhere(np.abs(look_LHUT - found_UT).max(axis=(2, 3)) < 1e-5).tolist() == [[1, 2]]


def both_looks(checkpoint: Checkpoint, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Where graphs say that a translation looks at its source, and where each head does."""
    tokenizer = checkpoint.source_tokenizer
    source = [*range(9, 18), tokenizer.eos_id]
    target = [*range(12, 19), tokenizer.eos_id]
    assert isinstance(checkpoint.model, Transformer)
    (look_LHUT,) = look_through(checkpoint.model, (tokenizer, tokenizer), [(source, target)])
    stepper = open_stepper(folder, checkpoint)
    context = stepper.encode([source])
    first_SK, score_SK = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.float32)
    found_UT = []
    for token in [tokenizer.bos_id, *target[:-1]]:
        token_SK = first_SK + token
        outputs, context = stepper.run_step(context, token_SK, first_SK, score_SK, forced_SK=token_SK)
        found_UT.append(outputs["attention"][0, 0])
    return np.array(found_UT), np.array(look_LHUT)
