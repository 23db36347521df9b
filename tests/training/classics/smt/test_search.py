"""The stack decoder against all derivations of tiny sentences, one after the other."""

from collections.abc import Iterator

import numpy as np
import pytest

from dragoman_training.alignment.bitext import Bitext, Sentences
from dragoman_training.classics.smt.decoder import UNKNOWN_SCORE, Decoder, Derivation, SearchOptions, Weights
from dragoman_training.classics.smt.language_model import estimate
from dragoman_training.classics.smt.phrases import learn_phrases

NUM_SOURCE, NUM_TARGET, NEVER_SEEN = 5, 6, 5
Way = tuple[tuple[int, int, int], ...]
"""Phrases in the order of the translation: first word, the one behind the last, pair or -1."""


def decoder(options: SearchOptions, weights: Weights) -> Decoder:
    random = np.random.default_rng(5)
    sources = [random.integers(0, NUM_SOURCE, random.integers(1, 6)).tolist() for _ in range(30)]
    targets = [[(word + random.integers(0, 2)) % NUM_TARGET for word in source] for source in sources]
    links = [
        np.eye(len(source), dtype=bool) | (random.random((len(source),) * 2) < 0.1) for source in sources
    ]
    bitext = Bitext(Sentences.of(sources, NUM_SOURCE), Sentences.of(targets, NUM_TARGET))
    return Decoder(
        table=learn_phrases(bitext, links, max_words=3, max_options=3),
        language_model=estimate(targets, NUM_TARGET, order=3),
        weights=weights,
        options=options,
    )


def derivations(one: Decoder, sentence: list[int]) -> Iterator[Way]:
    """All orders of all segmentations within the limit of distortion, with all translations."""
    limit = one.options.distortion_limit
    choices = []
    for start in range(len(sentence)):
        spans = one.table.spans(sentence, start)
        if not spans or spans[0][0] > start + 1:
            choices.append((start, start + 1, -1))
        choices += [(start, end, pair) for end, first, behind in spans for pair in range(first, behind)]

    def go_on(way: Way, covered: frozenset[int], last_end: int) -> Iterator[Way]:
        if len(covered) == len(sentence):
            yield way
            return
        gap = next(place for place in range(len(sentence)) if place not in covered)
        for start, end, pair in choices:
            if covered.intersection(range(start, end)) or abs(start - last_end) > limit:
                continue
            if start == gap or end - gap <= limit:
                yield from go_on((*way, (start, end, pair)), covered.union(range(start, end)), end)

    return go_on((), frozenset(), 0)


def score(one: Decoder, way: Way) -> tuple[float, tuple[int, ...]]:
    weights = one.weights
    total, last_end, words = 0.0, 0, []
    for start, end, pair in way:
        own = [one.language_model.num_words] if pair < 0 else one.table.target(pair)
        scores = np.array(
            [weights.phrase, weights.lexical, weights.phrase_backward, weights.lexical_backward]
        )
        total += UNKNOWN_SCORE if pair < 0 else float(one.table.scores_P4[pair].astype(float) @ scores)
        total -= weights.distortion * abs(start - last_end) + weights.phrases + weights.words * len(own)
        last_end = end
        words += own
    sentence = np.array(words, np.int32)
    return total + weights.language_model * one.language_model.log_probability(sentence), tuple(words)


def decode(one: Decoder, sentence: list[int], num_best: int = 1) -> list[Derivation]:
    return one.decode([f"word{word}" for word in sentence], sentence, num_best)


@pytest.mark.parametrize("limit", [0, 1, 3, 6])
@pytest.mark.parametrize("sentence", [[0], [1, 0, 3], [2, 2, 4, 1], [0, NEVER_SEEN, 4, 1]])
def test_wide_stacks_find_the_best_of_all_derivations(limit: int, sentence: list[int]) -> None:
    wide = SearchOptions(stack_size=20_000, distortion_limit=limit)
    weights = Weights(phrase=0.3, lexical=0.1, language_model=0.9, distortion=0.2, words=-0.4, phrases=0.3)
    one = decoder(wide, weights)
    by_words: dict[tuple[int, ...], float] = {}
    for way in derivations(one, sentence):
        value, words = score(one, way)
        by_words[words] = max(value, by_words.get(words, -np.inf))
    found = decode(one, sentence, num_best=10)
    best = sorted(by_words.values(), reverse=True)[: len(found)]
    assert [derivation.score for derivation in found] == pytest.approx(best)


def test_features_times_weights_are_the_score() -> None:
    one = decoder(SearchOptions(), Weights())
    found = decode(one, [2, 2, 4, 1, 0], num_best=20)
    assert len(found) > 10
    for derivation in found:
        assert derivation.features_F @ one.weights.vector() == pytest.approx(derivation.score)


def test_a_list_has_no_words_twice_and_the_best_first() -> None:
    found = decode(decoder(SearchOptions(), Weights()), [2, 2, 4, 1, 0], num_best=50)
    assert len({derivation.words for derivation in found}) == len(found) > 10
    scores = [derivation.score for derivation in found]
    assert scores == sorted(scores, reverse=True)


def test_words_that_are_passed_through_twice_are_the_same_words() -> None:
    weights = Weights(distortion=0.3)
    (found,) = decode(decoder(SearchOptions(), weights), [NEVER_SEEN] * 5, num_best=50)
    assert found.words == (f"word{NEVER_SEEN}",) * 5
    one = decoder(SearchOptions(), Weights())
    assert found.score == pytest.approx(max(score(one, way)[0] for way in derivations(one, [NEVER_SEEN] * 5)))
    others = [f"word{place}" for place in range(3)]
    listed = one.decode(others, [NEVER_SEEN] * 3, 50)
    assert len({derivation.words for derivation in listed}) == len(listed) == 6


def test_every_word_of_a_sentence_of_500_is_translated_once() -> None:
    sentence = np.random.default_rng(2).integers(0, NUM_SOURCE + 1, 500).tolist()
    (found,) = decode(decoder(SearchOptions(stack_size=5), Weights(distortion=0.05)), sentence)
    places = [place for start, end, _ in found.phrases for place in range(start, end)]
    assert sorted(places) == list(range(500))
    assert sum(word == f"word{NEVER_SEEN}" for word in found.words) == sentence.count(NEVER_SEEN)
