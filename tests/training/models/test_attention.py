"""Attention: padding and neighbours change nothing, in a module and along given targets."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.export.toy_checkpoint import luong
from tests.training.toy_pairs import TARGETS, toy_model, toy_tokenizer
from torch import Tensor

from dragoman_training.classics.study import sharpness_of
from dragoman_training.decoding.forced_attention import ForcedAttention, attention_along
from dragoman_training.models import BahdanauConfig, ModelConfig, TransformerConfig
from dragoman_training.models.layers.attention import (
    AdditiveAttention,
    Attention,
    DotAttention,
    GeneralAttention,
    HeadedAttention,
    MultiHeadAttention,
    ScaledDotAttention,
)
from dragoman_training.models.layers.transformer_attention import CrossAttention, PastAttention, SelfAttention
from dragoman_training.models.luong import MonotonicWindow, PredictedWindow, Window

WIDTH = 4
ATTENTIONS: dict[str, Attention] = {
    "dot": DotAttention(),
    "scaled_dot": ScaledDotAttention(),
    "general": GeneralAttention(query_size=WIDTH, value_size=WIDTH),
    "concat": AdditiveAttention(query_size=WIDTH, value_size=WIDTH, units=5),
    "one head": MultiHeadAttention(query_size=WIDTH, value_size=WIDTH, units=6, heads=1),
    "three heads": MultiHeadAttention(query_size=WIDTH, value_size=WIDTH, units=6, heads=3),
    "cross": CrossAttention(WIDTH, 2),
}
WINDOWS: dict[str, Window | None] = {
    "global": None,
    "local-m": MonotonicWindow(1),
    "local-p": PredictedWindow(2, WIDTH),
}


def mask_of(lengths: list[int], positions: int) -> Tensor:
    return (torch.arange(positions) < torch.tensor(lengths).unsqueeze(1)).float()


def look(
    attention: Attention, window: Window | None, query_SQD: Tensor, states_STD: Tensor, mask_ST: Tensor
) -> tuple[Tensor, Tensor]:
    position_SQ = torch.arange(query_SQD.shape[1]).expand(query_SQD.shape[:2])
    factor = None if window is None else window(query_SQD, mask_ST, position_SQ)
    with torch.no_grad():
        context, weights = attention(
            query_SQD, attention.keys(states_STD), attention.values(states_STD), mask_ST, factor
        )
    return context, weights


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("attention", ATTENTIONS)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), padding=st.integers(0, 5))
def test_padding_of_any_length_changes_nothing(
    attention: str, window: str, lengths: list[int], padding: int
) -> None:
    torch.manual_seed(len(lengths) + padding)
    sizes = (len(lengths), max(lengths) + padding)
    query_SQD, states_STD = torch.randn(sizes[0], 12, WIDTH), torch.randn(*sizes, WIDTH)
    mask_ST = mask_of(lengths, sizes[1])
    module, where = ATTENTIONS[attention], WINDOWS[window]
    context, weights = look(module, where, query_SQD, states_STD, mask_ST)
    changed_STD = torch.where(mask_ST.unsqueeze(2) == 0, 1e3, states_STD)
    context_again, weights_again = look(module, where, query_SQD, changed_STD, mask_ST)
    assert torch.equal(context, context_again)
    assert torch.equal(weights, weights_again)
    assert (weights.masked_select(mask_ST.unsqueeze(1) == 0) == 0).all()
    for number, length in enumerate(lengths):
        here = slice(number, number + 1)
        alone, alone_weights = look(
            module, where, query_SQD[here], states_STD[here, :length], mask_ST[here, :length]
        )
        torch.testing.assert_close(context[here], alone)
        torch.testing.assert_close(weights[here, :, :length], alone_weights)


@pytest.mark.parametrize("attention", ATTENTIONS)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), padding=st.integers(0, 5))
def test_what_is_had_alone_is_what_is_had_together(attention: str, lengths: list[int], padding: int) -> None:
    torch.manual_seed(len(lengths) + padding)
    module, sizes = ATTENTIONS[attention], (len(lengths), max(lengths) + padding)
    query_SQD, states_STD = torch.randn(sizes[0], 12, WIDTH), torch.randn(*sizes, WIDTH)
    mask_ST = mask_of(lengths, sizes[1])
    context_SQD, weights_SQT = look(module, None, query_SQD, states_STD, mask_ST)
    changed_STD = torch.where(mask_ST.unsqueeze(2) == 0, 1e3, states_STD)
    with torch.no_grad():
        keys, values = module.keys_and_values(changed_STD)
        torch.testing.assert_close(module.keys(changed_STD), keys)
        torch.testing.assert_close(module.values(changed_STD), values)
        torch.testing.assert_close(module.context(query_SQD, keys, values, mask_ST), context_SQD)
        if isinstance(module, HeadedAttention):
            again_SQD, weights_SHQT = module.by_head(query_SQD, keys, values, mask_ST)
            assert torch.equal(again_SQD, context_SQD)
            assert torch.equal(weights_SHQT.mean(dim=1), weights_SQT)
            assert (weights_SHQT.masked_select((mask_ST == 0)[:, None, None]) == 0).all()


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), padding=st.integers(0, 5))
def test_padding_of_any_length_changes_nothing_in_a_sentence_that_looks_at_itself(
    lengths: list[int], padding: int
) -> None:
    torch.manual_seed(len(lengths) + padding)
    attention, sizes = SelfAttention(8, 2), (len(lengths), max(lengths) + padding)
    states_STD, mask_ST = torch.randn(*sizes, 8), mask_of(lengths, sizes[1])
    changed_STD = torch.where(mask_ST.unsqueeze(2) == 0, 1e3, states_STD)
    with torch.no_grad():
        found, other = (attention(states, mask_ST) for states in (states_STD, changed_STD))
        for number, length in enumerate(lengths):
            here = slice(number, number + 1)
            alone = attention(states_STD[here, :length], mask_ST[here, :length])
            assert torch.equal(found[here, :length], other[here, :length])
            torch.testing.assert_close(found[here, :length], alone)


@given(ages=st.lists(st.integers(1, 9), min_size=1, max_size=4), padding=st.integers(0, 5))
def test_padding_before_a_past_of_any_age_changes_nothing(ages: list[int], padding: int) -> None:
    torch.manual_seed(len(ages) + padding)
    sizes = (len(ages), 2, max(ages) + padding, 4)
    attention, query_XHQA = PastAttention(), torch.randn(sizes[0], 2, 1, 4)
    keys_XHNA, values_XHNA = torch.randn(sizes), torch.randn(sizes)
    mask_XN = mask_of(ages, sizes[2]).flip(1)
    is_padding_X1N1 = mask_XN[:, None, :, None] == 0
    changed_keys, changed_values = (
        states.masked_fill(is_padding_X1N1, 1e3) for states in (keys_XHNA, values_XHNA)
    )
    found_XHQA = attention.past(query_XHQA, keys_XHNA, values_XHNA, mask_XN)
    assert torch.equal(found_XHQA, attention.past(query_XHQA, changed_keys, changed_values, mask_XN))
    for number, age in enumerate(ages):
        here = slice(number, number + 1)
        keys, values = (states[here, :, -age:] for states in (keys_XHNA, values_XHNA))
        alone = attention.past(query_XHQA[here], keys, values, mask_XN[here, -age:])
        torch.testing.assert_close(found_XHQA[here], alone)


LOCAL_P = luong(encoder_layers=1, encoder_units=6, decoder_layers=1, attention="local-p", window=2)
CONFIGS: list[ModelConfig] = [
    BahdanauConfig(embedding_size=8, encoder_units=6, decoder_units=8, attention_units=5),
    LOCAL_P,
    TransformerConfig(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=1),
]


def attentions(config: ModelConfig, numbers: list[int]) -> list[ForcedAttention]:
    """Along targets of different lengths, together."""
    torch.manual_seed(4)
    tokenizer = toy_tokenizer()
    model = toy_model(config, tokenizer).eval()
    targets = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_ids([TARGETS[n] for n in numbers])]
    sources = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_ids([TARGETS[-1 - n] for n in numbers])]
    found = attention_along(model, (tokenizer, tokenizer), sources, targets)
    for attention, source, target in zip(found, sources, targets, strict=True):
        assert attention.weights_UT.shape == (len(target), len(source))
    return found


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.family)
def test_a_sentence_is_looked_at_alike_alone_and_among_others(config: ModelConfig) -> None:
    together = attentions(config, [0, 1, 2])
    for number, attention in enumerate(together):
        (alone,) = attentions(config, [number])
        assert abs(alone.weights_UT - attention.weights_UT).max() < 1e-6
        if config == LOCAL_P:
            assert alone.centre_U is not None
            assert attention.centre_U is not None
            assert abs(alone.centre_U - attention.centre_U).max() < 1e-5
        else:
            assert attention.centre_U is None
            assert abs(attention.weights_UT.sum(axis=1) - 1).max() < 1e-5


def test_sharpness_is_a_mean_over_target_pieces() -> None:
    one = ForcedAttention(weights_UT=np.array([[1, 0, 0, 0], [0.25] * 4], dtype=np.float32), centre_U=None)
    other = ForcedAttention(weights_UT=np.array([[0.5, 0.5]], dtype=np.float32), centre_U=None)
    found = sharpness_of([one, other])
    assert found.largest == pytest.approx((1 + 0.25 + 0.5) / 3)
    assert found.entropy_bits == pytest.approx((0 + 2 + 1) / 3)
    assert found.end_share == pytest.approx((0 + 0.25 + 0.5) / 3)
    assert found.total == pytest.approx(1)
