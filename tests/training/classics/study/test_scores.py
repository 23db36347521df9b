"""BLEU of parts of a test set, and shares of another model's."""

import numpy as np
import sacrebleu

from dragoman_training.classics.study.scores import Scorer, interval, share_of

REFERENCES = [
    "A man sees the old dog .",
    "The bird calls often .",
    "Two dogs run over the grass .",
    "Yes .",
] * 3
TRANSLATIONS = ["A man sees an old dog .", "the bird often calls", "Two dogs run over the lawn .", ""] * 3


def test_a_part_has_the_bleu_that_sacrebleu_gives_it() -> None:
    for lowercase in (False, True):
        scorer = Scorer(TRANSLATIONS, REFERENCES, lowercase=lowercase, target_language="en")
        for part in (range(12), (0, 2, 5), (1,), (3, 7)):
            expected = sacrebleu.corpus_bleu(
                [TRANSLATIONS[n] for n in part], [[REFERENCES[n] for n in part]], lowercase=lowercase
            )
            assert scorer.bleu(part) == expected.score


def test_the_interval_is_as_wide_as_the_sentences_differ() -> None:
    alike = Scorer(TRANSLATIONS[:1] * 20, REFERENCES[:1] * 20, lowercase=False, target_language="en").score(
        range(20)
    )
    mixed = Scorer(TRANSLATIONS * 2, REFERENCES * 2, lowercase=False, target_language="en").score(range(20))
    assert alike.half_width < 1e-9
    assert mixed.half_width > 1
    again = Scorer(TRANSLATIONS * 2, REFERENCES * 2, lowercase=False, target_language="en").score(range(20))
    assert (mixed.value, mixed.half_width) == (again.value, again.half_width)


def test_a_language_without_spaces_is_scored_by_characters() -> None:
    translations, references = ["一个男人看见狗。"], ["一个男人看到老狗。"]
    scorer = Scorer(translations, references, lowercase=False, target_language="zh-Hant")
    expected = sacrebleu.corpus_bleu(translations, [references], tokenize="char")
    assert scorer.bleu((0,)) == expected.score > 10
    assert "tok:char" in scorer.signature


def test_systems_are_resampled_alike_and_parts_each_in_its_own_way() -> None:
    one = Scorer(TRANSLATIONS, REFERENCES, lowercase=False, target_language="en")
    same = Scorer(TRANSLATIONS, REFERENCES, lowercase=False, target_language="en")
    assert (one.score(range(12)).resampled == same.score(range(12)).resampled).all()
    # The same sentences again, at other places: other draws of them.
    assert (one.score(range(4)).resampled != one.score(range(4, 8)).resampled).any()


DOGS = [f"a man with {number} old dogs sees the {number + 1} birds in a tree" for number in range(40)]
GOOD = [each.replace("old", "young") if place % 3 else each for place, each in enumerate(DOGS)]
BAD = [each.replace("man with", "dog and") if place % 2 else each for place, each in enumerate(GOOD)]


def scorer(translations: list[str]) -> Scorer:
    return Scorer(translations, DOGS, lowercase=False, target_language="en")


def test_a_share_is_of_the_same_sentences_and_its_interval_of_the_same_draws() -> None:
    good, bad, numbers = scorer(GOOD), scorer(BAD), range(5, 35)
    share = share_of(bad, good, numbers)
    assert share is not None
    assert share.value == bad.bleu(numbers) / good.bleu(numbers) < 1
    assert np.array_equal(share.resampled, bad.score(numbers).resampled / good.score(numbers).resampled)
    low, high = interval(share.resampled)
    assert low < share.value < high
    assert share.half_width == (high - low) / 2 > 0.01
    # A model has all of its own BLEU, whichever sentences are drawn.
    own = share_of(good, scorer(GOOD), numbers)
    assert own is not None
    assert (own.value, own.half_width) == (1, 0)
