"""MarianMT's parameters as those of our Transformer, and its settings as ours.

Owns what stands where on both sides. Marian's models normalise after each sublayer, have sines before
cosines, and start a translation from the token that pads.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from dragoman_export.from_hf.errors import MarianError
from dragoman_training.models import Transformer, TransformerConfig, VocabularyShape
from dragoman_training.models.layers.transformer_attention import CrossAttention, SelfAttention
from dragoman_training.models.layers.transformer_layers import Activation
from dragoman_training.models.transformer import AlignmentHead

ACTIVATIONS: dict[str, Activation] = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
"""Hugging Face's names, and ours."""


def marian_config(config: Any) -> TransformerConfig:
    """Sizes and settings of a `MarianConfig`. Raises MarianError for what we have no place for."""
    for name in ("attention_heads", "ffn_dim"):
        encoder, decoder = getattr(config, f"encoder_{name}"), getattr(config, f"decoder_{name}")
        if encoder != decoder:
            raise MarianError(
                f"encoder_{name} is {encoder} and decoder_{name} {decoder}; only models with the same on "
                "both sides can be exported"
            )
    if config.activation_function not in ACTIVATIONS:
        raise MarianError(
            f"activation_function is {config.activation_function!r}; known are {', '.join(ACTIVATIONS)}"
        )
    return TransformerConfig(
        width=config.d_model,
        heads=config.encoder_attention_heads,
        feed_forward=config.encoder_ffn_dim,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        norm="post",
        positions="sinusoidal",
        max_positions=config.max_position_embeddings,
        activation=ACTIVATIONS[config.activation_function],
        scale_embedding=bool(config.scale_embedding),
        dropout=config.dropout,
    )


def marian_transformer(marian: Any, never_produced: Iterable[int]) -> Transformer:
    """A `MarianMTModel` as a Transformer in evaluation mode. Raises MarianError.

    Its alignments are those of the last layer's first head: what Marian gives out, and what many of
    OPUS-MT's models were trained to align with (`--guided-alignment`).
    """
    config = marian.config
    encoder, decoder = marian.model.encoder, marian.model.decoder
    if not torch.equal(encoder.embed_positions.weight, decoder.embed_positions.weight):
        raise MarianError("its encoder and decoder have different positions; such a model can't be exported")
    is_tied = torch.equal(marian.lm_head.weight, decoder.embed_tokens.weight)
    vocabulary = VocabularyShape(
        source_size=encoder.embed_tokens.num_embeddings,
        target_size=decoder.embed_tokens.num_embeddings,
        shared=torch.equal(encoder.embed_tokens.weight, decoder.embed_tokens.weight),
        bos=config.decoder_start_token_id,
        # Unlike our own models, these may produce the unknown token.
        never_produced=tuple(never_produced),
    )
    model = Transformer(replace(marian_config(config), tied_output=is_tied), vocabulary)
    model.alignment_head = AlignmentHead(layer=config.decoder_layers - 1, head=0)
    with torch.no_grad():
        model.source_embedding.weight.copy_(encoder.embed_tokens.weight)
        model.target_embedding.weight.copy_(decoder.embed_tokens.weight)
        model.output.embedding.weight.copy_(marian.lm_head.weight)
        model.positions.table_LD.copy_(encoder.embed_positions.weight)
        model.output.bias.copy_(marian.final_logits_bias.reshape(-1))
        ours: Any
        for ours, theirs in zip(model.encoder_layers, encoder.layers, strict=True):
            _copy_self_attention(ours.attention, theirs.self_attn)
            _copy(ours.attention_residual.norm, theirs.self_attn_layer_norm)
            _copy_feed_forward(ours, theirs)
        for ours, theirs in zip(model.decoder_layers, decoder.layers, strict=True):
            _copy_self_attention(ours.self_attention, theirs.self_attn)
            _copy(ours.self_residual.norm, theirs.self_attn_layer_norm)
            _copy_cross_attention(ours.cross_attention, theirs.encoder_attn)
            _copy(ours.cross_residual.norm, theirs.encoder_attn_layer_norm)
            _copy_feed_forward(ours, theirs)
    return model.eval()


def _copy_self_attention(ours: SelfAttention, theirs: Any) -> None:
    _copy(ours.input, theirs.q_proj, theirs.k_proj, theirs.v_proj)
    _copy(ours.output, theirs.out_proj)


def _copy_cross_attention(ours: CrossAttention, theirs: Any) -> None:
    _copy(ours.query, theirs.q_proj)
    _copy(ours.memory, theirs.k_proj, theirs.v_proj)
    _copy(ours.output, theirs.out_proj)


def _copy_feed_forward(ours: Any, theirs: Any) -> None:
    _copy(ours.feed_forward.expand, theirs.fc1)
    _copy(ours.feed_forward.contract, theirs.fc2)
    _copy(ours.feed_forward_residual.norm, theirs.final_layer_norm)


def _copy(ours: nn.Module, *theirs: Any) -> None:
    """Weight and bias of layers, one below the other."""
    for name in ("weight", "bias"):
        parameter: Tensor = getattr(ours, name)
        parameter.copy_(torch.cat([getattr(layer, name) for layer in theirs]))
