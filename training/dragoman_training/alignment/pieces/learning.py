"""A table over a model's tokens, learnt from training pairs by one of the aligner's models."""

from collections.abc import Callable, Sequence

import numpy as np

from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.alignment.pieces.table import TranslationTable
from dragoman_training.alignment.training import Iteration, TrainingOptions, train_aligner

NUM_ITERATIONS = 6
"""Passes of expectation maximisation over model 1."""

Pair = tuple[Sequence[int], Sequence[int]]


def learn_table(
    pairs: Sequence[Pair],
    *,
    source_vocabulary: int,
    report: Callable[[Iteration], None] = lambda iteration: None,
) -> TranslationTable:
    """t(target | source) of pairs of token ids by IBM model 1 (Brown et al. 1993, section 4.1).

    Raises ValueError where no pair has tokens on both sides.
    """
    most = max((max(map(len, pair)) for pair in pairs), default=1)
    # Numbers of tokens are not spelt.
    options = TrainingOptions(model="ibm1", iterations=(NUM_ITERATIONS,), spelling=0, max_words=max(1, most))
    aligner = train_aligner(as_words(pairs), options, WordRule(lowercase=False), report)
    lexicon = aligner.forward.lexicon
    # NULL's row is behind the last word's.
    source_V = np.array([*map(int, aligner.source.words), source_vocabulary], np.int32)
    target_V = np.array([int(word) for word in aligner.target.words], np.int32)
    return TranslationTable.from_pairs(
        np.repeat(source_V, np.diff(lexicon.first_V)),
        target_V[lexicon.target_P],
        lexicon.probability_P.astype(np.float64),
        source_vocabulary=source_vocabulary,
    )


def as_words(pairs: Sequence[Pair]) -> list[tuple[list[str], list[str]]]:
    """Tokens as the words that an aligner takes. Equal ones are one object: there are few, in long texts."""
    words: dict[int, str] = {}
    return [
        (
            [words.setdefault(token, str(token)) for token in one],
            [words.setdefault(token, str(token)) for token in other],
        )
        for one, other in pairs
    ]
