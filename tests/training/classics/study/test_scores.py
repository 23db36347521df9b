"""BLEU of parts of a test set."""

import sacrebleu

from dragoman_training.classics.study.scores import Scorer

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
            assert scorer.score(part).bleu == expected.score


def test_the_interval_is_as_wide_as_the_sentences_differ() -> None:
    alike = Scorer(TRANSLATIONS[:1] * 20, REFERENCES[:1] * 20, lowercase=False, target_language="en").score(
        range(20)
    )
    mixed = Scorer(TRANSLATIONS * 2, REFERENCES * 2, lowercase=False, target_language="en").score(range(20))
    assert alike.half_width < 1e-9
    assert mixed.half_width > 1
    assert mixed == Scorer(TRANSLATIONS * 2, REFERENCES * 2, lowercase=False, target_language="en").score(
        range(20)
    )


def test_a_language_without_spaces_is_scored_by_characters() -> None:
    translations, references = ["一个男人看见狗。"], ["一个男人看到老狗。"]
    scorer = Scorer(translations, references, lowercase=False, target_language="zh-Hant")
    expected = sacrebleu.corpus_bleu(translations, [references], tokenize="char")
    assert scorer.score((0,)).bleu == expected.score > 10
    assert "tok:char" in scorer.signature


def test_length_is_that_of_the_translations_by_that_of_the_references() -> None:
    scorer = Scorer(["a b c", "a"], ["a b c d e f", "a b"], lowercase=False, target_language="en")
    assert scorer.length((0, 1)) == 4 / 8
    assert scorer.length((0,)) == 3 / 6


def test_systems_are_resampled_alike_and_parts_each_in_its_own_way() -> None:
    one = Scorer(TRANSLATIONS, REFERENCES, lowercase=False, target_language="en")
    same = Scorer(TRANSLATIONS, REFERENCES, lowercase=False, target_language="en")
    assert (one.resampled(range(12)) == same.resampled(range(12))).all()
    # The same sentences again, at other places: other draws of them.
    assert (one.resampled(range(4)) != one.resampled(range(4, 8))).any()
