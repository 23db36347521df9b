"""What a softmax adds up: masked scores count for nothing, and no number is too small to be quick."""

import torch

from dragoman_export.graphs.traced_attention import exponentials

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
