"""Traced search by blocks finds what a search of everything finds, and exponentials add up to a softmax."""

import pytest
import torch

from dragoman_export.graphs.encoder_and_step import best_continuations
from dragoman_export.graphs.traced_attention import exponentials


@pytest.mark.parametrize("beam", [1, 4, 8])
@pytest.mark.parametrize(
    "vocabulary",
    [
        pytest.param(40, id="few blocks"),
        pytest.param(4000, id="many blocks"),
        pytest.param(31, id="a prime, in no blocks"),
    ],
)
def test_the_best_are_those_of_all_scores(beam: int, vocabulary: int) -> None:
    torch.manual_seed(beam)
    token_score_RV = torch.randn(7 * beam, vocabulary).log_softmax(dim=-1)
    # As a vocabulary has them: tokens that are never produced.
    token_score_RV[:, :3] = -torch.inf
    score_SK = -10 * torch.rand(7, beam)
    running_SX = (token_score_RV + score_SK.reshape(-1, 1)).reshape(7, -1)
    expected_score, expected_place = running_SX.topk(2 * beam, dim=1)
    score, place = best_continuations(token_score_RV, score_SK)
    assert torch.equal(score, expected_score)
    assert torch.equal(place, expected_place)


def test_of_a_row_that_is_not_in_use_nothing_is_found() -> None:
    """At its first step a sentence has one row, in whose few blocks all of its best are."""
    token_score_RV = torch.randn(3 * 8, 40).log_softmax(dim=-1)
    score_SK = torch.full((3, 8), -torch.inf)
    score_SK[:, 0] = 0
    score, place = best_continuations(token_score_RV, score_SK)
    expected_score, expected_place = token_score_RV[::8].topk(16, dim=1)
    assert torch.equal(score, expected_score)
    assert torch.equal(place, expected_place)


MASKED = -1e4
SCORES = torch.tensor([[2.0, -1.0, MASKED, 0.5, MASKED], [-300.0, 7.0, 6.0, MASKED, MASKED]])


def test_their_shares_are_those_of_a_softmax() -> None:
    powers = exponentials(SCORES, SCORES == MASKED)

    torch.testing.assert_close(powers / powers.sum(dim=-1, keepdim=True), SCORES.softmax(dim=-1))


def test_what_is_masked_is_exactly_zero_and_nothing_else_is_below_a_normal_number() -> None:
    is_masked = SCORES == MASKED

    powers = exponentials(SCORES, is_masked)

    assert (powers[is_masked] == 0).all()
    assert (powers[~is_masked] >= torch.finfo(torch.float32).tiny).all()
