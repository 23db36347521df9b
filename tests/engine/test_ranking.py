"""Ranking by numbers worked out by hand."""

import pytest

from dragoman_server.engine.request import FinishReason
from dragoman_server.engine.search.beam import Ending, normalised_score, rank


def ending(log_probability: float, num_tokens: int, row: int = 0) -> Ending:
    return Ending(
        log_probability=log_probability, num_tokens=num_tokens, row=row, finish_reason=FinishReason.STOP
    )


def test_the_length_penalty_is_that_of_wu_et_al() -> None:
    assert normalised_score(-6.0, 7, 1.0) == pytest.approx(-3.0)
    assert normalised_score(-6.0, 1, 0.6) == pytest.approx(-6.0)
    assert normalised_score(-6.0, 19, 0.5) == pytest.approx(-3.0)


def test_the_penalty_turns_the_order_round() -> None:
    short, long = ending(-3.0, 1), ending(-5.0, 7)
    assert [e for _, e in rank([long, short], length_penalty=0.0, num_hypotheses=2)] == [short, long]
    assert [e for _, e in rank([short, long], length_penalty=1.0, num_hypotheses=2)] == [long, short]


def test_of_equals_the_first_to_end_is_first() -> None:
    endings = [ending(-3.0, 4, row=1), ending(-3.0, 4, row=0), ending(-3.0, 5)]
    assert [e for _, e in rank(endings, length_penalty=0.0, num_hypotheses=3)] == endings
