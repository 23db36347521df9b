"""Where models look, along given targets."""

import numpy as np
import pytest
import torch
from tests.training.toy_pairs import TARGETS, toy_model, toy_tokenizer

from dragoman_training.classics.study import sharpness_of
from dragoman_training.decoding.forced_attention import ForcedAttention, attention_along
from dragoman_training.models import BahdanauConfig, LuongConfig, ModelConfig, TransformerConfig

LOCAL_P = LuongConfig(
    embedding_size=8,
    encoder_layers=1,
    encoder_units=6,
    decoder_layers=1,
    decoder_units=12,
    attention="local-p",
    window=2,
)
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
