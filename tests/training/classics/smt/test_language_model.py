"""Kneser-Ney smoothing: a distribution in every state, and the paper's recursion in plain loops."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from math import exp, log

import numpy as np
import pytest

from dragoman_training.classics.smt.language_model import LanguageModel, advance, discounts, estimate

NUM_WORDS = 6
UNKNOWN, END, BEGIN = 6, 7, 8


def text(num_sentences: int = 80) -> list[list[int]]:
    random = np.random.default_rng(3)
    words = [0, 0, 0, 1, 1, 2, 3, 4]
    return [random.choice(words, random.integers(1, 7)).tolist() for _ in range(num_sentences)]


def probability(model: LanguageModel, context: Sequence[int], word: int) -> float:
    state = model.state_T[NUM_WORDS + 3]
    for one in context:
        _, state = advance(model, state, one)
    return exp(advance(model, state, word)[0])


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("min_counts", [(1,), (1, 1, 2), (1, 2, 3)])
def test_probabilities_sum_to_one_in_every_state(order: int, min_counts: Sequence[int]) -> None:
    model = estimate(text(), NUM_WORDS, order=order, min_counts=min_counts)
    for state in np.unique(model.state_T):
        words = [*range(NUM_WORDS), UNKNOWN, END]
        assert sum(exp(advance(model, state, word)[0]) for word in words) == pytest.approx(1)


def plain_kneser_ney(sentences: list[list[int]], order: int) -> Callable[[Sequence[int], int], float]:
    """p(w | context) by the recursion of Chen & Goodman (1998), section 3."""
    counts: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order + 1)]
    for sentence in sentences:
        framed = [BEGIN, *sentence, END]
        for size in range(1, order + 1):
            counts[size].update(tuple(framed[i : i + size]) for i in range(len(framed) - size + 1))
    adjusted: list[dict[tuple[int, ...], int]] = [{} for _ in range(order + 1)]
    adjusted[order] = dict(counts[order])
    for size in range(1, order):
        before = defaultdict(set)
        for gram in counts[size + 1]:
            before[gram[1:]].add(gram[0])
        adjusted[size] = {
            gram: count if gram[0] == BEGIN else len(before[gram]) for gram, count in counts[size].items()
        }
    adjusted[1].pop((BEGIN,))
    lost = [(0.0, 0.0, 0.0)] + [
        discounts(np.array(list(adjusted[size].values()))) for size in range(1, order + 1)
    ]

    def p(context: Sequence[int], word: int) -> float:
        context = tuple(context)[-(order - 1) :] if order > 1 else ()
        return recurse(context, word)

    def recurse(context: tuple[int, ...], word: int) -> float:
        size = len(context) + 1
        lower = recurse(context[1:], word) if context else 1 / (NUM_WORDS + 2)
        after = {gram: count for gram, count in adjusted[size].items() if gram[:-1] == context}
        if not after:
            return lower
        total = sum(after.values())
        held = sum(lost[size][min(count, 3) - 1] for count in after.values()) / total
        own = after.get((*context, word), 0)
        return max(0.0, own - (lost[size][min(own, 3) - 1] if own else 0)) / total + held * lower

    return p


@pytest.mark.parametrize("order", [1, 2, 3])
def test_equals_the_recursion_in_plain_loops(order: int) -> None:
    model, plain = estimate(text(), NUM_WORDS, order=order), plain_kneser_ney(text(), order)
    for context in ([], [0], [1, 0], [4, 4, 4], [5], [UNKNOWN, 0]):
        for word in [*range(NUM_WORDS), UNKNOWN, END]:
            assert probability(model, context, word) == pytest.approx(plain([BEGIN, *context], word))


def test_a_sentence_is_the_product_of_its_words_and_its_end() -> None:
    model = estimate(text(), NUM_WORDS, order=3)
    sentence = [0, 3, 1]
    single = [probability(model, sentence[:i], word) for i, word in enumerate([*sentence, END])]
    found = model.log_probability(np.array(sentence, np.int32))
    assert found == pytest.approx(sum(map(log, single)))


def test_a_saved_model_is_the_same() -> None:
    model = estimate(text(), NUM_WORDS, order=3, min_counts=(1, 1, 2))
    again = LanguageModel.from_arrays(model.arrays())
    sentence = np.array([0, 3, 1, UNKNOWN, 2], np.int32)
    assert again.log_probability(sentence) == pytest.approx(model.log_probability(sentence), rel=1e-5)
