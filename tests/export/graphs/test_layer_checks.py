"""A Transformer whose layers differ in more than their weights is refused."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from dragoman_export.graphs.trace import trace
from dragoman_training.models import Transformer, TransformerConfig, build_model
from dragoman_training.models.seq2seq import VocabularyShape

CONFIG = TransformerConfig(width=16, heads=2, feed_forward=20, encoder_layers=2, decoder_layers=3)
VOCABULARY = VocabularyShape(source_size=30, target_size=30, shared=True, bos=2, never_produced=(0,))


def _has_no_bias(model: Transformer) -> None:
    model.decoder_layers[0].feed_forward.expand.bias = None


def _later_has_no_bias(model: Transformer) -> None:
    model.encoder_layers[1].attention.output.bias = None


def _is_wider(model: Transformer) -> None:
    feed_forward = model.decoder_layers[1].feed_forward
    feed_forward.expand, feed_forward.contract = nn.Linear(16, 24), nn.Linear(24, 16)


def _has_another_activation(model: Transformer) -> None:
    model.decoder_layers[2].feed_forward.activation = nn.SiLU()


def _has_another_epsilon(model: Transformer) -> None:
    model.encoder_layers[1].attention_residual.norm.eps = 1e-3


def _has_more_heads(model: Transformer) -> None:
    model.decoder_layers[1].cross_attention.num_heads = 4


def _has_its_norm_elsewhere(model: Transformer) -> None:
    model.decoder_layers[1].self_residual.is_pre = False


def _has_a_buffer_of_its_own(model: Transformer) -> None:
    model.encoder_layers[1].register_buffer("more", torch.zeros(2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_has_no_bias, r"feed_forward.expand.bias of decoder layer 1 is .*20.*, and of layer 0 missing"),
        (_later_has_no_bias, r"attention.output.bias of encoder layer 1 is missing"),
        (_is_wider, r"feed_forward.contract.* of decoder layer 1 is"),
        (_has_another_activation, "feed_forward.activation of decoder layer 2 is SiLU, and of layer 0 ReLU"),
        (
            _has_another_epsilon,
            "attention_residual.norm.eps of encoder layer 1 is 0.001, and of layer 0 1e-05",
        ),
        (_has_more_heads, "cross_attention.num_heads of decoder layer 1 is 4, and of layer 0 2"),
        (_has_its_norm_elsewhere, "self_residual.is_pre of decoder layer 1 is False, and of layer 0 True"),
        (
            _has_a_buffer_of_its_own,
            r"more of encoder layer 1 is torch.float32 of \[2\], and of layer 0 missing",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_layer_that_differs_in_structure_is_named(change: Callable[[Transformer], None], said: str) -> None:
    model = build_model(CONFIG, VOCABULARY)
    assert isinstance(model, Transformer)
    change(model)
    with pytest.raises(ValueError, match=said):
        trace(model)
