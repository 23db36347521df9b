"""Phrase pairs: the example of the literature, and probabilities in plain loops."""

from collections import Counter, defaultdict
from math import log

import numpy as np
import pytest

from dragoman_training.alignment.bitext import Bitext, Sentences, Vocabulary
from dragoman_training.alignment.links import Matrix
from dragoman_training.classics.smt.phrases import PhraseTable, extract_phrases, learn_phrases

ENGLISH = ["michael", "assumes", "that", "he", "will", "stay", "in", "the", "house"]
GERMAN = ["michael", "geht", "davon", "aus", ",", "dass", "er", "im", "haus", "bleibt"]
# Koehn (2010), "Statistical Machine Translation", figures 5.5 and 5.6. The comma has no link.
LINKS = ((0, 0), (1, 1), (1, 2), (1, 3), (2, 5), (3, 6), (4, 9), (5, 9), (6, 7), (7, 7), (8, 8))
PAIRS = """michael | michael
michael assumes | michael geht davon aus
michael assumes | michael geht davon aus ,
michael assumes that | michael geht davon aus , dass
michael assumes that he | michael geht davon aus , dass er
michael assumes that he will stay in the house | michael geht davon aus , dass er im haus bleibt
assumes | geht davon aus
assumes | geht davon aus ,
assumes that | geht davon aus , dass
assumes that he | geht davon aus , dass er
assumes that he will stay in the house | geht davon aus , dass er im haus bleibt
that | dass
that | , dass
that he | dass er
that he | , dass er
that he will stay in the house | dass er im haus bleibt
that he will stay in the house | , dass er im haus bleibt
he | er
he will stay in the house | er im haus bleibt
will stay | bleibt
will stay in the house | im haus bleibt
in the | im
in the house | im haus
house | haus"""


def matrix(num_sources: int, num_targets: int, links: tuple[tuple[int, int], ...]) -> Matrix:
    result = np.zeros((num_sources, num_targets), bool)
    for i, j in links:
        result[i, j] = True
    return result


def bitext_of(pairs: list[tuple[list[str], list[str]]]) -> tuple[Bitext, Vocabulary, Vocabulary]:
    source, target = (Vocabulary.of(pair[side] for pair in pairs) for side in (0, 1))
    sides = [
        Sentences.of([[known.number(word) for word in pair[side]] for pair in pairs], len(known.words))
        for side, known in enumerate((source, target))
    ]
    return Bitext(*sides), source, target


@pytest.mark.parametrize("max_words", [3, 10])
def test_the_textbook_s_phrases_are_extracted(max_words: int) -> None:
    bitext, _, _ = bitext_of([(ENGLISH, GERMAN)])
    spans = extract_phrases(bitext, [matrix(9, 10, LINKS)], max_words)
    found = sorted(
        (" ".join(ENGLISH[first:end]), " ".join(GERMAN[start:stop]))
        for first, end, start, stop in spans.tolist()
    )
    wanted = sorted(tuple(line.split(" | ")) for line in PAIRS.split("\n"))
    assert found == [pair for pair in wanted if all(len(side.split()) <= max_words for side in pair)]


CORPUS = [
    (["das", "haus"], ["the", "house"], ((0, 0), (1, 1))),
    (["das", "haus", "ist", "alt"], ["the", "house", "is", "old"], ((0, 0), (1, 1), (2, 2), (3, 3))),
    (["das", "gebäude"], ["the", "old", "house"], ((0, 0), (1, 2))),
    (["alt"], ["old"], ((0, 0),)),
]


def word_weight(counts: Counter[tuple[str, str]], linked: list[str], word: str) -> float:
    """The mean of w(word | f) over the words f that it is linked with (Koehn et al. 2003, section 4)."""
    linked = linked or ["NULL"]
    totals = [sum(n for (other, _), n in counts.items() if other == f) for f in linked]
    return sum(counts[f, word] / total for f, total in zip(linked, totals, strict=True)) / len(linked)


def learnt(max_options: int) -> tuple[PhraseTable, Vocabulary, Vocabulary, list[Matrix]]:
    """The corpus's phrases, its words on both sides, and its links."""
    bitext, source, target = bitext_of([(one, other) for one, other, _ in CORPUS])
    links = [matrix(len(one), len(other), own) for one, other, own in CORPUS]
    return learn_phrases(bitext, links, max_words=2, max_options=max_options), source, target, links


def test_probabilities_and_lexical_weights_are_those_of_plain_loops() -> None:
    table, source, target, links = learnt(50)
    words: Counter[tuple[str, str]] = Counter()
    back: Counter[tuple[str, str]] = Counter()
    for one, other, own in CORPUS:
        words.update((one[i], other[j]) for i, j in own)
        words.update(("NULL", word) for j, word in enumerate(other) if j not in {link[1] for link in own})
        back.update((other[j], one[i]) for i, j in own)
        back.update(("NULL", word) for i, word in enumerate(one) if i not in {link[0] for link in own})
    pairs: Counter[tuple[str, str]] = Counter()
    lexical: dict[tuple[str, str], float] = defaultdict(float)
    lexical_backward: dict[tuple[str, str], float] = defaultdict(float)
    for number, (one, other, own) in enumerate(CORPUS):
        alone, _, _ = bitext_of([(one, other)])
        for first, end, start, stop in extract_phrases(alone, [links[number]], 2).tolist():
            pair = " ".join(one[first:end]), " ".join(other[start:stop])
            pairs[pair] += 1
            weight = backward_weight = 1.0
            for j in range(start, stop):
                weight *= word_weight(words, [one[i] for i, k in own if k == j], other[j])
            for i in range(first, end):
                backward_weight *= word_weight(back, [other[j] for k, j in own if k == i], one[i])
            lexical[pair] = max(lexical[pair], weight)
            lexical_backward[pair] = max(lexical_backward[pair], backward_weight)
    assert len(table) == len(pairs)
    for (one, other), count in pairs.items():
        numbers = [source.number(word) for word in one.split()]
        found = {end: range(first, behind) for end, first, behind in table.spans(numbers, 0)}[len(numbers)]
        (row,) = (pair for pair in found if [target.words[w] for w in table.target(pair)] == other.split())
        forward = count / sum(n for (f, _), n in pairs.items() if f == one)
        backward = count / sum(n for (_, e), n in pairs.items() if e == other)
        expected = [forward, lexical[one, other], backward, lexical_backward[one, other]]
        assert table.scores_P4[row].tolist() == pytest.approx([log(value) for value in expected], abs=1e-6)


def test_only_the_most_frequent_translations_are_kept() -> None:
    table, source, target, _ = learnt(1)
    ((_, first, behind),) = table.spans([source.number("das")], 0)
    assert behind - first == 1
    assert [target.words[word] for word in table.target(first)] == ["the"]
