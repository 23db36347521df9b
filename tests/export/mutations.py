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


def permute_decoder_units(model: Transformer) -> None:
    """The rows of a feed-forward layer's weights in another order."""
    _permute(_middle(model)[1].feed_forward.expand.weight)


def permute_encoder_units(model: Transformer) -> None:
    """The same on the other side."""
    _permute(_middle(model)[0].feed_forward.expand.weight)


def permute_attention_output(model: Transformer) -> None:
    """What a self-attention gives in another order."""
    _permute(_middle(model)[1].self_attention.output.weight)


def double_a_head(model: Transformer) -> None:
    """One head of cross-attention twice as large."""
    _middle(model)[1].cross_attention.output.weight[:, : WIDTH // HEADS].mul_(2)


def enlarge_an_encoder_head(model: Transformer) -> None:
    """One head of an encoder layer half as large again."""
    _middle(model)[0].attention.output.weight[:, : WIDTH // HEADS].mul_(1.5)


def swap_queries_and_keys(model: Transformer) -> None:
    """What a self-attention looks with, and what it looks at."""
    weight = _middle(model)[1].self_attention.input.weight
    weight.copy_(torch.cat([weight[WIDTH : 2 * WIDTH], weight[:WIDTH], weight[2 * WIDTH :]]))


def swap_keys_and_values(model: Transformer) -> None:
    """What a cross-attention looks at, and what it finds there."""
    weight = _middle(model)[1].cross_attention.memory.weight
    weight.copy_(weight.roll(WIDTH, 0))


def shift_positions(model: Transformer) -> None:
    """Each position has the vector of the one before."""
    model.positions.table_LD.copy_(model.positions.table_LD.roll(1, 0))


def lose_a_mask(model: Transformer) -> None:
    """A layer of the encoder looks at what pads shorter sentences."""
    attention = _middle(model)[0].attention
    whole = attention.forward
    attention.forward = lambda inputs_STD, mask_ST: whole(inputs_STD, torch.ones_like(mask_ST))


def shift_output_bias(model: Transformer) -> None:
    """Each piece has the bias of the one before."""
    model.output.bias.copy_(model.output.bias.roll(1))


MUTATIONS: tuple[Callable[[Transformer], None], ...] = (
    permute_decoder_units,
    permute_encoder_units,
    permute_attention_output,
    double_a_head,
    enlarge_an_encoder_head,
    swap_queries_and_keys,
    swap_keys_and_values,
    shift_positions,
    lose_a_mask,
    shift_output_bias,
)


def mutated(model: Transformer, mutate: Callable[[Transformer], None]) -> Transformer:
    """A copy with that wrong."""
    model = copy.deepcopy(model)
    mutate(model)
    return model
