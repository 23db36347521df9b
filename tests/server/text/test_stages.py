"""Sentences of the engine, made of a text, and a list of hypotheses that holds none twice."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from dragoman_bundle import Bundle, open_bundle
from tests.server.copying_bundle import IDS, MANIFEST, write_bundle

from dragoman_server.engine import FinishReason, Hypothesis, SentenceResult
from dragoman_server.text.judge.judging import distinct
from dragoman_server.text.options import Protection, TranslationOptions
from dragoman_server.text.passage import Passage
from dragoman_server.text.stages import advance, complete, first_of_each_text, prepare


@pytest.mark.parametrize("source_end", [True, False])
def test_a_source_ends_as_its_model_was_trained_with(tmp_path: Path, source_end: bool) -> None:
    bundle = open_bundle(write_bundle(tmp_path, manifest=replace(MANIFEST, source_end=source_end)))
    options = TranslationOptions(beam_size=1, length_penalty=1.0)
    document = prepare("Ein Hund. Zwei Vögel.", bundle, options, deadline=None)
    end = [IDS.eos] if source_end else []
    assert [list(sentence.source) for sentence in document.sentences] == [
        [*ids, *end] for ids in bundle.source_tokenizer.encode_ids(["Ein Hund.", "Zwei Vögel."])
    ]


PIECES = ["", "ab", "a", "b", "c", " "]


class Found(NamedTuple):
    text: str
    tokens: tuple[int, ...]


def read(tokens: Sequence[int]) -> str:
    return "".join(PIECES[token] for token in tokens)


def hypothesis(*tokens: int, score: float = 0.0) -> Hypothesis:
    return Hypothesis(
        tokens=tokens, score=score, log_probability=score, finish_reason=FinishReason.STOP, attention=None
    )


@pytest.mark.parametrize(
    ("ranked", "maximum", "expected"),
    [
        # One text in two ways of cutting it, and the next ones move up.
        ([(1,), (2, 3), (4,), (2,)], 3, [(1,), (4,), (2,)]),
        ([(1,), (2, 3), (4,), (2,)], 2, [(1,), (4,)]),
        ([(1,), (), (4,)], 3, [(1,), (4,)]),
        ([(1,), (5,), (0,), (4,)], 3, [(1,), (4,)]),
        ([(1,), (2, 3)], 2, [(1,)]),
        # What the search holds for the best is the translation.
        ([(), (1,)], 2, [(), (1,)]),
        ([(), (0,), (1,)], 2, [(), (1,)]),
        ([()], 1, [()]),
    ],
)
def test_a_text_comes_once(
    ranked: list[tuple[int, ...]], maximum: int, expected: list[tuple[int, ...]]
) -> None:
    found = distinct([Found(read(tokens), tokens) for tokens in ranked], maximum=maximum)
    assert list(found) == [Found(read(tokens), tokens) for tokens in expected]


def prepared(bundle: Bundle, text: str, num_hypotheses: int) -> Passage:
    options = TranslationOptions(
        beam_size=4,
        num_hypotheses=num_hypotheses,
        length_penalty=1.0,
        # The answers have no full stops, and get none.
        protection=Protection(is_automatic=False),
    )
    return prepare(text, bundle, options, deadline=None)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return open_bundle(write_bundle(tmp_path))


def test_of_a_list_everything_is_searched_for_that_may_move_up(bundle: Bundle) -> None:
    for num_hypotheses, num_searched in ((1, 1), (2, 4), (4, 4)):
        (sentence,) = prepared(bundle, "Ja.", num_hypotheses).sentences
        assert sentence.options.num_hypotheses == num_searched


@pytest.mark.parametrize(
    ("num_hypotheses", "of_sentences", "expected"),
    [
        # The last of a sentence's list stands for those that it lacks.
        (3, [["ja", "nein", "", "ja"], ["ja ja", "", "ja ja"]], [("ja ja ja", 0.0), ("nein ja ja", -1.0)]),
        # Sentences that differ may join to one text.
        (2, [["ja ja", "ja"], ["nein", "ja nein"]], [("ja ja nein", 0.0)]),
    ],
)
def test_the_joined_texts_of_sentences_differ(
    bundle: Bundle, num_hypotheses: int, of_sentences: list[list[str]], expected: list[tuple[str, float]]
) -> None:
    results = [
        SentenceResult(
            hypotheses=tuple(
                hypothesis(*bundle.target_tokenizer.encode(text).ids, score=-rank)
                for rank, text in enumerate(texts)
            ),
            queue_seconds=0.0,
            encode_seconds=0.0,
            decode_seconds=0.0,
        )
        for texts in of_sentences
    ]
    found = complete(advance(prepared(bundle, "Ja. Nein.", num_hypotheses), results))
    assert [(each.text, each.score) for each in found.hypotheses] == expected


def test_a_text_that_comes_again_stays_where_it_came_first() -> None:
    ranked = [Found(text, (rank,)) for rank, text in enumerate("abacb")]
    assert first_of_each_text(ranked) == (Found("a", (0,)), Found("b", (1,)), Found("c", (3,)))
