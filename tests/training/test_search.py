"""The reference search, against everything there is and against a model that can be worked out by hand."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from dragoman_bundle.search import Candidates, Ids, Scores, beam_search, length_penalty

from dragoman_training.recipe.settings import DecodingConfig

BOS, EOS = 0, 1


class TableStepper:
    """Log-probabilities of the next token by the last token and the first source id: nothing else matters."""

    bos_id = BOS
    eos_id = EOS

    def __init__(self, log_probability: Scores) -> None:
        self.table_LNV = log_probability
        self.vocabulary_size = log_probability.shape[2]

    def encode(self, sources: Sequence[Sequence[int]]) -> Ids:
        return np.array([source[0] for source in sources])

    def step(self, context: Ids, token_SK: Ids, parent_SK: Ids, score_SK: Scores) -> tuple[Candidates, Ids]:
        sentences, beam = token_SK.shape
        score_SKV = score_SK[:, :, None] + self.table_LNV[context[:, None], token_SK]
        flat = score_SKV.reshape(sentences, -1)
        index_SC = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * beam]
        return (
            Candidates(
                score_SC=np.take_along_axis(flat, index_SC, axis=1),
                index_SC=index_SC,
            ),
            context,
        )

    def select(self, context: Any, sentences: Ids) -> Any:
        return context[sentences]


def random_table(seed: int, languages: int = 4, vocabulary: int = 5) -> Scores:
    table = (
        np.random.default_rng(seed).normal(size=(languages, vocabulary, vocabulary)).astype(np.float32) * 2
    )
    table[:, :, BOS] = -np.inf
    shifted: Scores = table - np.logaddexp.reduce(table, axis=2, keepdims=True)
    return shifted


def decoding(**values: Any) -> DecodingConfig:
    return DecodingConfig(**{"max_output_ratio": 0.0, "max_output_margin": 5, **values})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_wide_enough_finds_the_best_of_all_translations(seed: int, alpha: float) -> None:
    table = random_table(seed, vocabulary=4)
    best = beam_search(TableStepper(table), [[0]], decoding(beam_size=200, length_penalty=alpha))[0]
    scores = []
    for length in range(5):
        for tokens in itertools.product([2, 3], repeat=length):
            path = [BOS, *tokens, EOS]
            total = sum(float(table[0, a, b]) for a, b in itertools.pairwise(path))
            scores.append((total / length_penalty(length + 1, alpha), tokens))
    expected_score, expected = max(scores)
    ended = [hypothesis for hypothesis in best if hypothesis.ended]
    assert ended[0].tokens == expected
    assert ended[0].score == pytest.approx(expected_score, abs=1e-5)
    assert len(ended) == len(scores)


def test_greedy_takes_the_likeliest_token_at_every_step() -> None:
    table = random_table(11)
    (hypothesis,) = beam_search(TableStepper(table), [[2]], decoding(beam_size=1))[0]
    token, expected = BOS, []
    while len(expected) < 5:
        token = int(table[2, token].argmax())
        if token == EOS:
            break
        expected.append(token)
    assert hypothesis.tokens == tuple(expected)


def test_a_sentence_is_the_same_whatever_its_neighbours() -> None:
    stepper = TableStepper(random_table(4))
    sources = [[0, 9], [1], [2, 9, 9, 9], [3], [1, 9, 9]]
    config = decoding(beam_size=3, max_output_ratio=1.0, max_output_margin=2)
    together = beam_search(stepper, sources, config)
    assert together == [beam_search(stepper, [source], config)[0] for source in sources]


def test_the_limit_ends_what_does_not_end_itself() -> None:
    table = np.full((1, 3, 3), -np.inf, np.float32)
    table[0, :, 2] = -0.5
    table[0, :, EOS] = -30.0
    hypotheses = beam_search(TableStepper(table), [[0]], decoding(beam_size=1, max_output_margin=4))[0]
    assert hypotheses[0].tokens == (2, 2, 2, 2)
    assert not hypotheses[0].ended
    assert hypotheses[0].log_probability == pytest.approx(-2.0)


def test_the_output_limit_follows_the_source() -> None:
    config = DecodingConfig(max_output_ratio=1.5, max_output_margin=4, max_output_tokens=20)
    assert [config.output_limit(length) for length in (1, 2, 10, 100)] == [6, 7, 19, 20]


def test_the_length_penalty_is_that_of_wu() -> None:
    assert length_penalty(1, 0.7) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(7, 0.5) == pytest.approx(math.sqrt(2))
    assert length_penalty(100, 0.0) == 1.0
