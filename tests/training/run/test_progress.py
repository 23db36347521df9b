"""Which validation counts as better."""

from dragoman_training.run.validation import Progress, Validation


def better(*results: tuple[float | None, float], measure: str = "bleu") -> list[bool]:
    """Whether each of these validations, of BLEU and perplexity, was the best when it came."""
    progress = Progress()
    return [
        progress.take_in(Validation(bleu=bleu, perplexity=perplexity, sample=None), measure)  # type: ignore[arg-type]
        for bleu, perplexity in results
    ]


def test_more_bleu_is_better() -> None:
    assert better((10.0, 20.0), (12.0, 30.0), (11.0, 5.0)) == [True, True, False]


def test_of_equal_bleu_the_lower_perplexity_is_better() -> None:
    assert better((10.0, 20.0), (10.0, 19.0), (10.0, 19.5)) == [True, True, False]


def test_bleu_that_is_noise_tells_nothing() -> None:
    # A model that has learnt little has a BLEU of 0 or by chance a bit more, while its perplexity falls.
    assert better((0.3, 555.0), (0.0, 399.0), (0.0, 305.0), (0.4, 310.0)) == [True, True, True, False]
    assert better((0.9, 300.0), (1.5, 350.0), (0.5, 200.0)) == [True, True, False]
