"""The search against results worked out by hand, by enumeration, and by training's own beam search."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dragoman_bundle.search import Candidates, beam_search, length_penalty
from tests.engine.house import searched
from tests.engine.table_decoder import (
    BOS,
    EOS,
    FloatArray,
    IntArray,
    Model,
    TableDecoder,
    Tokens,
    attention_of,
    random_model,
)

from dragoman_server.engine.decoder import StepOutput
from dragoman_server.engine.request import FinishReason, Hypothesis, Sentence
from dragoman_server.engine.search.beam import Beams, Ending, advance, normalised_score, rank
from dragoman_training.recipe.settings import DecodingConfig


def sentence(source: Tokens, *, beam_size: int, max_output_tokens: int, **rest: Any) -> Sentence:
    of_search = {name: rest.pop(name) for name in ("num_hypotheses", "length_penalty") if name in rest}
    return Sentence(source=source, options=searched(beam_size, max_output_tokens, **of_search), **rest)


def search(
    model: Model, vocabulary: int, sentences: Sequence[Sentence], joins: dict[int, int] | None = None
) -> list[tuple[Hypothesis, ...]]:
    """Decodes sentences of one beam size; `joins` says after how many steps each joins, 0 if not told."""
    decoder = TableDecoder(model, vocabulary)
    beams = Beams(
        beam_size=sentences[0].options.beam_size, vocabulary=vocabulary, bos=decoder.bos, eos=decoder.eos
    )
    batch = decoder.open_batch(sentences[0].options.beam_size)
    results: dict[int, tuple[Hypothesis, ...]] = {}
    running: list[int] = []
    for step in itertools.count():
        joined = [i for i in range(len(sentences)) if (joins or {}).get(i, 0) == step]
        pool = [*running, *joined]
        origin_S = place([i not in results for i in running], len(joined))
        running = [pool[origin] for origin in origin_S]
        batch.regroup(
            origin_S, [[sentences[i].source for i in joined]], max(len(s.source) for s in sentences)
        )
        beams.regroup(origin_S, [sentences[i] for i in joined])
        for s in beams.advance(batch.step(beams.rows())):
            results[running[s]] = beams.hypotheses(s)
        if len(results) == len(sentences):
            break
    return [results[i] for i in range(len(sentences))]


def place(stays: list[bool], num_joined: int) -> IntArray:
    """Origins by which stayers keep their places where they can, and others fill the gaps."""
    present = np.flatnonzero([*stays, *[True] * num_joined])
    origin_S = np.arange(len(present))
    kept_S = np.isin(origin_S, present) & (origin_S < len(stays))
    origin_S[~kept_S] = present[~np.isin(present, origin_S[kept_S])]
    return origin_S


def exhaustive(model: Model, vocabulary: int, wanted: Sentence) -> list[tuple[float, Tokens, FinishReason]]:
    """Every hypothesis there is, by score."""
    limit, alpha = wanted.options.max_output_tokens, wanted.options.length_penalty
    found: list[tuple[float, Tokens, FinishReason]] = []

    def extend(prefix: Tokens, log_probability: float) -> None:
        scores = model(wanted.source, prefix)
        for token in range(2, vocabulary):
            longer, score = (*prefix, token), log_probability + float(scores[token])
            if len(longer) == limit:
                found.append((normalised_score(score, limit, alpha), longer, FinishReason.LENGTH))
            else:
                extend(longer, score)
        score = log_probability + float(scores[EOS])
        found.append((normalised_score(score, len(prefix) + 1, alpha), prefix, FinishReason.STOP))

    extend((), 0.0)
    return sorted(found, key=lambda hypothesis: -hypothesis[0])


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_that_holds_everything_finds_what_enumeration_finds(seed: int) -> None:
    # Three tokens beside BOS, four steps: 1 + 2 + 4 + 8 that end and 16 that don't, fewer than 32 rows.
    model = random_model(4, seed)
    wanted = sentence((5, 6), beam_size=32, max_output_tokens=4, num_hypotheses=31)
    [hypotheses] = search(model, 4, [wanted])
    expected = exhaustive(model, 4, wanted)
    assert len(expected) == 31
    assert [(h.tokens, h.finish_reason) for h in hypotheses[:31]] == [(e[1], e[2]) for e in expected]
    np.testing.assert_allclose([h.score for h in hypotheses], [e[0] for e in expected], rtol=1e-5)


def test_beam_two_by_hand() -> None:
    a, b = 2, 3
    table = {
        (): {EOS: 0.1, a: 0.5, b: 0.4},
        (a,): {EOS: 0.2, a: 0.4, b: 0.4},
        (b,): {EOS: 0.8, a: 0.1, b: 0.1},
        (a, a): {EOS: 0.6, a: 0.2, b: 0.2},
        (a, b): {EOS: 0.5, a: 0.3, b: 0.2},
    }

    def model(source: Tokens, prefix: Tokens) -> FloatArray:
        row = table[prefix]
        return np.log(np.array([1e-30, row[EOS], row[a], row[b]], np.float32))

    # Step 1 keeps a 0.5 and b 0.4. Step 2 offers "b" 0.32, aa 0.2, ab 0.2, "a" 0.1, of which "b" ends. Step 3
    # offers "aa" 0.12 and "ab" 0.1: both end, which makes three, and the search keeps two.
    wanted = sentence((5,), beam_size=2, max_output_tokens=9, length_penalty=0.0)
    [hypotheses] = search(model, 4, [wanted])
    assert [h.tokens for h in hypotheses] == [(b,), (a, a)]
    np.testing.assert_allclose([h.log_probability for h in hypotheses], np.log([0.32, 0.12]), rtol=1e-5)
    # Greedy takes a, and a again, and ends: 0.5 * 0.4 * 0.6, over the penalty of three tokens.
    [[greedy]] = search(model, 4, [sentence((5,), beam_size=1, max_output_tokens=9, length_penalty=0.6)])
    assert greedy.tokens == (a, a)
    assert greedy.score == pytest.approx(math.log(0.12) / (8 / 6) ** 0.6, rel=1e-5)


class TableStepper:
    """The table decoder as training's search steps it."""

    bos_id, eos_id = BOS, EOS

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.vocabulary_size = vocabulary
        self._model = model

    def encode(self, sources: Sequence[Sequence[int]]) -> Any:
        return [tuple(source) for source in sources], [() for _ in sources]

    def step(self, context: Any, token_SK: Any, parent_SK: Any, score_SK: Any) -> tuple[Candidates, Any]:
        sources, state = context
        rows = [(*state[p], int(t)) for p, t in zip(parent_SK.ravel(), token_SK.ravel(), strict=True)]
        beam = token_SK.shape[1]
        scores = np.stack([self._model(sources[r // beam], row[1:]) for r, row in enumerate(rows)])
        flat = (scores + score_SK.reshape(-1, 1)).reshape(len(sources), -1)
        index = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * beam]
        candidates = Candidates(score_SC=np.take_along_axis(flat, index, axis=1), index_SC=index)
        return candidates, (sources, rows)

    def select(self, context: Any, sentences: Any) -> Any:
        return [context[0][s] for s in sentences], context[1]


@pytest.mark.parametrize("beam_size", [1, 2, 3, 5, 32])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_search_is_the_one_that_training_measures_with(beam_size: int, alpha: float) -> None:
    model = random_model(7)
    sources = [tuple(range(5, 5 + length)) for length in (1, 2, 3, 5, 8)]
    how = {"beam_size": beam_size, "length_penalty": alpha}
    config = DecodingConfig(**how, max_output_tokens=12, max_output_ratio=1.5, max_output_margin=2)
    reference = beam_search(TableStepper(model, 7), sources, config)
    limits = [min(12, math.ceil(1.5 * len(source) + 2)) for source in sources]
    sentences = [
        sentence(source, **how, max_output_tokens=limit)
        for source, limit in zip(sources, limits, strict=True)
    ]
    for found, expected in zip(search(model, 7, sentences), reference, strict=True):
        assert [h.tokens for h in found] == [h.tokens for h in expected]
        assert [h.score for h in found] == [h.score for h in expected]
        assert [h.finish_reason is FinishReason.STOP for h in found] == [h.ended for h in expected]


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_sentences_that_join_at_any_step_come_out_as_alone(beam_size: int) -> None:
    model = random_model(6, seed=3)
    sentences = [
        sentence(
            tuple(range(10 + i, 11 + 2 * i)),
            beam_size=beam_size,
            max_output_tokens=3 + i,
            target_prefix=(3, 2, 5)[: i % 3],
            return_attention=i % 2 == 0,
        )
        for i in range(8)
    ]
    together = search(model, 6, sentences, joins={i: (i * 5) % 7 for i in range(8)})
    for wanted, found in zip(sentences, together, strict=True):
        [alone] = search(model, 6, [wanted])
        for one, other in zip(found, alone, strict=True):
            assert (one.tokens, one.score) == (other.tokens, other.score)
            assert one.finish_reason is other.finish_reason


@pytest.mark.parametrize("beam_size", [1, 3])
def test_every_hypothesis_begins_with_the_prefix_and_its_score_counts_it(beam_size: int) -> None:
    model = random_model(6)
    prefix = (4, 2, 4)
    wanted = sentence((5, 6), beam_size=beam_size, max_output_tokens=8, target_prefix=prefix)
    [hypotheses] = search(model, 6, [wanted])
    for hypothesis in hypotheses:
        assert hypothesis.tokens[:3] == prefix
        tokens = (*hypothesis.tokens, EOS)[: 8 if hypothesis.finish_reason is FinishReason.LENGTH else None]
        expected = sum(model((5, 6), tokens[:u])[token] for u, token in enumerate(tokens))
        assert hypothesis.log_probability == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_start_is_read_and_is_no_part_of_a_hypothesis(beam_size: int) -> None:
    model = random_model(6)
    start, prefix, source = (4, 3), (2,), (5, 6)
    options = {"beam_size": beam_size, "max_output_tokens": 6, "return_attention": True}
    plain = sentence(source, **options, num_hypotheses=beam_size, target_prefix=prefix)
    others = [replace(plain, source=(5, 6, 7)), plain]
    begun = replace(plain, target_start=start)
    # What a model says that has read the start: the same search over that model, without one.
    [expected] = search(lambda source, read: model(source, start + read), 6, [plain])
    for found in (search(model, 6, [begun])[0], search(model, 6, [*others, begun], joins={2: 1})[2]):
        assert [hypothesis.tokens for hypothesis in found] == [hypothesis.tokens for hypothesis in expected]
        for one, other in zip(found, expected, strict=True):
            assert one.score == pytest.approx(other.score, rel=1e-5)
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-5)
            assert one.finish_reason is other.finish_reason
            assert one.attention is not None
            assert other.attention is not None
            assert one.attention.shape == other.attention.shape


def test_a_prefix_may_hold_the_end_token_without_ending() -> None:
    wanted = sentence((5,), beam_size=1, max_output_tokens=4, target_prefix=(EOS, 2))
    [[hypothesis]] = search(random_model(5), 5, [wanted])
    assert hypothesis.tokens[:2] == (EOS, 2)


def test_live_rows_fill_up_at_the_limit_with_reason_length() -> None:
    def endless(source: Tokens, prefix: Tokens) -> FloatArray:
        return np.array([-np.inf, -np.inf, math.log(0.6), math.log(0.4)], np.float32)

    [hypotheses] = search(endless, 4, [sentence((5,), beam_size=3, max_output_tokens=2, length_penalty=0.0)])
    assert [h.tokens for h in hypotheses] == [(2, 2), (2, 3), (3, 2)]
    assert {h.finish_reason for h in hypotheses} == {FinishReason.LENGTH}


@pytest.mark.parametrize("beam_size", [1, 3])
def test_attention_follows_the_backpointers(beam_size: int) -> None:
    model = random_model(6, seed=1)
    options = {"beam_size": beam_size, "max_output_tokens": 7, "return_attention": True}
    wanted = [sentence((9, 8, 7)[:n], **options) for n in (1, 2, 3)]
    for asked, hypotheses in zip(wanted, search(model, 6, wanted, joins={1: 2, 2: 3}), strict=True):
        for hypothesis in hypotheses:
            attended = hypothesis.tokens
            if hypothesis.finish_reason is FinishReason.STOP:
                attended = (*attended, EOS)
            expected = [attention_of(asked.source, attended[:u]) for u in range(len(attended))]
            np.testing.assert_array_equal(hypothesis.attention, np.stack(expected))


def test_an_end_beyond_the_kth_rank_is_dropped() -> None:
    # Vocabulary 4, beam 2: candidates b0, eos1, eos0, a1.
    new = advance(
        np.array([[-1.0, -2.0, -3.0, -4.0]], np.float32),
        np.array([[3, 4 + EOS, EOS, 4 + 2]]),
        vocabulary=4,
        eos=EOS,
    )
    assert new.ended_SK.tolist() == [[False, True]]
    assert new.ended_row_SK.tolist() == [[0, 1]]
    assert (new.token_SK.tolist(), new.row_SK.tolist()) == ([[3, 2]], [[0, 1]])
    assert new.score_SK.tolist() == [[-1.0, -4.0]]


def test_an_end_of_a_row_that_is_not_in_use_ends_nothing() -> None:
    beams = Beams(beam_size=2, vocabulary=4, bos=BOS, eos=EOS)
    beams.regroup(np.array([0]), [sentence((1,), beam_size=2, max_output_tokens=1)])
    output = StepOutput(
        top_score_SC=np.array([[-1.0, -np.inf, -np.inf, -np.inf]], np.float32),
        top_index_SC=np.array([[2, 4 + EOS, 3, 4 + 2]]),
        forced_score_SK=np.zeros((1, 2), np.float32),
        attention_SKT=None,
    )
    assert beams.advance(output) == [0]
    (found,) = beams.hypotheses(0)
    assert (found.tokens, found.finish_reason) == ((2,), FinishReason.LENGTH)


def ending(log_probability: float, num_tokens: int, row: int = 0) -> Ending:
    return Ending(
        log_probability=log_probability, num_tokens=num_tokens, row=row, finish_reason=FinishReason.STOP
    )


def test_the_length_penalty_is_that_of_wu_et_al() -> None:
    assert normalised_score(-6.0, 7, 1.0) == pytest.approx(-3.0)
    assert normalised_score(-6.0, 1, 0.6) == pytest.approx(-6.0)
    assert normalised_score(-6.0, 19, 0.5) == pytest.approx(-3.0)
    assert [length_penalty(*each) for each in ((1, 0.7), (7, 1.0), (100, 0.0))] == [1.0, 2.0, 1.0]
    assert length_penalty(7, 0.5) == pytest.approx(math.sqrt(2))


def test_the_penalty_turns_the_order_round() -> None:
    short, long = ending(-3.0, 1), ending(-5.0, 7)
    assert [e for _, e in rank([long, short], length_penalty=0.0, num_hypotheses=2)] == [short, long]
    assert [e for _, e in rank([short, long], length_penalty=1.0, num_hypotheses=2)] == [long, short]


def test_of_equals_the_first_to_end_is_first() -> None:
    endings = [ending(-3.0, 4, row=1), ending(-3.0, 4, row=0), ending(-3.0, 5)]
    assert [e for _, e in rank(endings, length_penalty=0.0, num_hypotheses=3)] == endings
