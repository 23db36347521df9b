"""Classes of words that stand beside the same words."""

import numpy as np

from dragoman_training.alignment.bitext import Sentences
from dragoman_training.classics.word_classes import learn_classes


def test_words_that_stand_beside_the_same_words_are_of_one_class() -> None:
    random = np.random.default_rng(1)
    # Articles 0 to 2, nouns 3 to 9, verbs 10 to 14.
    sentences = [
        [random.integers(0, 3), random.integers(3, 10), random.integers(10, 15)] * random.integers(1, 3)
        for _ in range(400)
    ]
    class_V = learn_classes(Sentences.of(sentences, 15), 3)
    for words in (class_V[:3], class_V[3:10], class_V[10:15]):
        assert len(set(words.tolist())) == 1
    assert len(set(class_V.tolist())) == 3
