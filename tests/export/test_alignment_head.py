"""Which of a Transformer's heads tells what words come from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, make_members, open_stepper

from dragoman_bundle import Tokenizer, open_bundle
from dragoman_export.alignment_head import (
    agreements,
    likeliest_links,
    look_through,
    with_alignment_head,
)
from dragoman_export.exporter import export_bundle
from dragoman_export.subject import subject_of
from dragoman_training.alignment import TranslationTable
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.corpus import Corpus
from dragoman_training.models.transformer import AlignmentHead, Transformer

CORPUS = Corpus(["ab cd", "cd", "ef ab", "gh", "ab"] * 4, ["BA DC", "DC", "FE BA", "HG", "BA"] * 4)


@pytest.fixture(scope="module")
def transformer(tokenizer: Tokenizer) -> Checkpoint:
    return make_checkpoint(CONFIGS["transformer"], tokenizer, tokenizer)


@pytest.fixture(scope="module")
def model(transformer: Checkpoint) -> Transformer:
    assert isinstance(transformer.model, Transformer)
    return transformer.model


def toy_pairs(eos: int) -> list[tuple[list[int], list[int]]]:
    generator = np.random.default_rng(8)
    return [
        (
            [*generator.integers(4, 40, source).tolist(), eos],
            [*generator.integers(4, 40, target).tolist(), eos],
        )
        for source, target in ((5, 4), (9, 7), (3, 6), (7, 7), (1, 1)) * 12
    ]


def looks(checkpoint: Checkpoint, pairs: list[tuple[list[int], list[int]]]) -> list[np.ndarray]:
    tokenizer = checkpoint.source_tokenizer
    assert isinstance(checkpoint.model, Transformer)
    return look_through(
        checkpoint.model, pairs, pads=(tokenizer.pad_id, tokenizer.pad_id), bos=tokenizer.bos_id
    )


@torch.inference_mode()
def test_all_heads_are_looked_through_as_the_model_steps(
    transformer: Checkpoint, model: Transformer, tokenizer: Tokenizer
) -> None:
    pairs = toy_pairs(tokenizer.eos_id)[:5]
    found = looks(transformer, pairs)
    for (source, target), look_LHUT in zip(pairs, found, strict=True):
        assert look_LHUT.shape == (2, 3, len(target), len(source))
        assert np.allclose(look_LHUT.sum(axis=-1), 1, atol=1e-5)
        memory, state = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        for step, token in enumerate([tokenizer.bos_id, *target[:-1]]):
            _, attention_SKT, state = model.step(torch.tensor([[token]]), memory, state)
            assert np.allclose(attention_SKT[0, 0].numpy(), look_LHUT[-1, :, step].mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("of_input", [False, True])
@pytest.mark.parametrize(("layer", "head"), [(0, 2), (1, 0)])
def test_the_head_that_has_all_links_agrees_wholly(
    transformer: Checkpoint, tokenizer: Tokenizer, layer: int, head: int, of_input: bool
) -> None:
    pairs = toy_pairs(tokenizer.eos_id)
    links = [
        {
            place: int(look_LHUT[layer, head, place + of_input, :-1].argmax())
            for place in range(len(target) - 1)
        }
        for look_LHUT, (_, target) in zip(looks(transformer, pairs), pairs, strict=True)
    ]
    assert isinstance(transformer.model, Transformer)
    found = agreements(
        transformer.model,
        pairs,
        links,
        pads=(tokenizer.pad_id, tokenizer.pad_id),
        bos=tokenizer.bos_id,
    )
    assert len(found) == 1 + 2 * 2 * 3
    assert (found[0].head, found[0].of_input) == (None, False)
    best = max(found, key=lambda each: each.share)
    assert (best.head, best.of_input, best.share) == (AlignmentHead(layer=layer, head=head), of_input, 1.0)
    assert sorted(each.share for each in found)[-2] < 0.9


def test_a_link_is_the_likeliest_source_unless_that_is_null() -> None:
    table = TranslationTable.from_pairs(
        np.array([0, 0, 1, 2, 2, 3, 3], np.int32),
        np.array([5, 6, 5, 6, 7, 7, 8], np.int32),
        np.array([0.6, 0.4, 0.9, 0.5, 0.2, 0.3, 0.1]),
        source_vocabulary=3,
    )
    # 5 comes from 1 rather than 0, 6 from 2; 7 and 8 from nothing, and 4 from nothing known.
    assert likeliest_links(table, ([0, 1, 2], [5, 6, 7, 8])) == {0: 1, 1: 2}
    # Of equals the first.
    assert likeliest_links(table, ([1, 1], [5])) == {0: 0}


def test_the_best_head_is_chosen_for_what_is_exported_alone(
    transformer: Checkpoint, model: Transformer
) -> None:
    lines: list[str] = []
    subject = subject_of([transformer])
    chosen = with_alignment_head(subject, CORPUS, lines.append)
    assert isinstance(chosen.model, Transformer)
    assert chosen.model.alignment_head is not None
    assert model.alignment_head is None
    (line,) = lines
    head = chosen.model.alignment_head
    assert line.startswith(
        f"alignments: head {head.head + 1} of decoder layer {head.layer + 1}, of the token"
    )
    assert ("read" in line) == chosen.attention_of_input
    assert replace(chosen, model=model, attention_of_input=False) == subject


@pytest.mark.parametrize("family", ["luong", "plain", "ensemble"])
def test_models_without_heads_to_choose_from_stay_as_they_are(tokenizer: Tokenizer, family: str) -> None:
    lines: list[str] = []
    subject = subject_of(make_members(family, tokenizer))
    assert with_alignment_head(subject, CORPUS, lines.append) is subject
    assert not lines


@pytest.mark.parametrize("corpus", [Corpus([""], ["BA"]), Corpus(["ab" * 60], ["BA"])])
def test_a_corpus_that_nothing_can_be_learnt_from_chooses_nothing(
    transformer: Checkpoint, corpus: Corpus
) -> None:
    lines: list[str] = []
    subject = subject_of([transformer])
    assert with_alignment_head(subject, corpus, lines.append) is subject
    assert lines == [
        "alignments: no training pair is short enough to choose a head by; the last layer's mean it is"
    ]


def test_the_graphs_give_out_the_chosen_head_and_the_manifest_says_of_which_token(
    transformer: Checkpoint, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    chosen = with_alignment_head(subject_of([transformer]), CORPUS, lambda line: None)
    assert isinstance(chosen.model, Transformer)
    assert chosen.model.alignment_head is not None
    head = chosen.model.alignment_head
    export_bundle(
        [transformer],
        tmp_path / "de-en" / "1",
        name="de-en",
        version="1",
        precisions=["fp32"],
        corpus=CORPUS,
        report=lambda line: None,
    )
    bundle = open_bundle(tmp_path / "de-en" / "1")
    assert bundle.manifest.attention_of_input == chosen.attention_of_input
    assert bundle.shortlist is None
    source, target = toy_pairs(tokenizer.eos_id)[1]
    (look_LHUT,) = looks(transformer, [(source, target)])
    stepper = open_stepper(tmp_path / "de-en" / "1" / "fp32", transformer)
    context = stepper.encode([source])
    first_SK, score_SK = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.float32)
    for step, token in enumerate([tokenizer.bos_id, *target[:-1]]):
        token_SK = first_SK + token
        outputs, context = stepper.run_step(context, token_SK, first_SK, score_SK, forced_SK=token_SK)
        found_T = outputs["attention"][0, 0]
        assert np.allclose(found_T, look_LHUT[head.layer, head.head, step], atol=1e-5)
