"""A deep Transformer with one thing wrong, as a broken export would have it."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from dragoman_training.models import Transformer, TransformerConfig, VocabularyShape
from dragoman_training.models.layers.transformer_layers import DecoderLayer, EncoderLayer, Norm

VOCABULARY, PAD, BOS, EOS = 60, 0, 2, 3
WIDTH, HEADS = 32, 4


def make_deep(num_layers: int, norm: Norm) -> Transformer:
    """A Transformer with random weights, half of its layers on either side."""
    torch.manual_seed(1)
    config = TransformerConfig(
        width=WIDTH,
        heads=HEADS,
        feed_forward=2 * WIDTH,
        encoder_layers=num_layers // 2,
        decoder_layers=num_layers // 2,
        norm=norm,
        activation="swish",
    )
    shape = VocabularyShape(
        source_size=VOCABULARY, target_size=VOCABULARY, shared=True, bos=BOS, never_produced=(PAD, 1, BOS)
    )
    model = Transformer(config, shape).eval().requires_grad_(False)
    model.output.bias.normal_(std=0.5)
    model.output.bias[EOS] = -2
    return model


def _middle(model: Transformer) -> tuple[EncoderLayer, DecoderLayer]:
    """A layer of each side, as far from its input as from its output."""
    encoder = model.encoder_layers[len(model.encoder_layers) // 2]
    decoder = model.decoder_layers[len(model.decoder_layers) // 2]
    assert isinstance(encoder, EncoderLayer)
    assert isinstance(decoder, DecoderLayer)
    return encoder, decoder


def _permute(weight: Tensor) -> None:
    weight.copy_(weight[torch.randperm(len(weight), generator=torch.Generator().manual_seed(3))])


def swap_queries_and_keys(model: Transformer) -> None:
    weight = _middle(model)[1].self_attention.input.weight
    weight.copy_(torch.cat([weight[WIDTH : 2 * WIDTH], weight[:WIDTH], weight[2 * WIDTH :]]))


def lose_a_mask(model: Transformer) -> None:
    attention = _middle(model)[0].attention
    whole = attention.forward
    attention.forward = lambda inputs_STD, mask_ST: whole(inputs_STD, torch.ones_like(mask_ST))


def _roll(tensor: Tensor, number: int) -> None:
    tensor.copy_(tensor.roll(number, 0))


HEAD = slice(WIDTH // HEADS)
MUTATIONS: dict[str, Callable[[Transformer], object]] = {
    "rows of a decoder layer permuted": lambda m: _permute(_middle(m)[1].feed_forward.expand.weight),
    "rows of an encoder layer permuted": lambda m: _permute(_middle(m)[0].feed_forward.expand.weight),
    "output of a self-attention permuted": lambda m: _permute(_middle(m)[1].self_attention.output.weight),
    "a head of cross-attention doubled": lambda m: (
        _middle(m)[1].cross_attention.output.weight[:, HEAD].mul_(2)
    ),
    "a head of the encoder larger by half": lambda m: (
        _middle(m)[0].attention.output.weight[:, HEAD].mul_(1.5)
    ),
    "queries for keys": swap_queries_and_keys,
    "keys for values of cross-attention": lambda m: _roll(_middle(m)[1].cross_attention.memory.weight, WIDTH),
    "vectors of the position before": lambda m: _roll(m.positions.table_LD, 1),
    "an encoder layer without a mask": lose_a_mask,
    "bias of the piece before": lambda m: _roll(m.output.bias, 1),
}


def mutated(model: Transformer, mutation: str) -> Transformer:
    """A copy with that wrong."""
    model = copy.deepcopy(model)
    MUTATIONS[mutation](model)
    return model
