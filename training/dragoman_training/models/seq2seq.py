"""What every model family is to the rest of the house: encode a source, step a decoder, train on pairs.

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions, V vocabulary, D a width.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from dragoman_training.models.layers.embedding import OutputLayer

Tensors = dict[str, Tensor]


class Seq2Seq(nn.Module, ABC):
    """An encoder and a decoder that is stepped one token at a time.

    `memory` is what stays fixed for a sentence and `state` what changes by step; both are named tensors
    whose first axis is the sentence (memory) or the row (state). `memory["mask"]` [S, T] is 1.0 at source
    positions and 0.0 at padding.
    """

    output: OutputLayer
    looks_for_token_read: ClassVar[bool] = False
    """Whether the attention that training guides is of the token that a step reads, not that it says."""

    @abstractmethod
    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        """Returns memory and the first state, one row per sentence."""

    @abstractmethod
    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        """Advances every row by one token.

        `state` has S·K rows, already those that the rows continue. Returns features [R, D], which `output`
        turns into logits, attention [S, K, T], zeros of a model that looks nowhere, and the new state.
        """

    @abstractmethod
    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        """Runs the decoder over given targets (teacher forcing), from what `encode` returned.

        `target_SU` are the decoder's inputs, beginning with bos. Returns features [S, U, D]: what `output`
        turns into logits. The same as stepping through the targets one by one; in training both drop the same
        activations with the same probability, but not the same ones.
        """

    def decode_with_attention(
        self, memory: Tensors, state: Tensors, target_SU: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Features as `decode` has them, and attention [S, U, T] that training guides, with a gradient."""
        features, attention = [], []
        for token_S1 in target_SU.split(1, dim=1):
            features_SD, attention_S1T, state = self.step(token_S1, memory, state)
            features.append(features_SD)
            attention.append(attention_S1T)
        return torch.stack(features, dim=1), torch.cat(attention, dim=1)

    def forward(self, source_ST: Tensor, source_length_S: Tensor, target_SU: Tensor) -> Tensor:
        """Encodes, then decodes given targets: features [S, U, D]."""
        memory, state = self.encode(source_ST, source_length_S)
        return self.decode(memory, state, target_SU)

    def penalty(self, memory: Tensors) -> Tensor | None:
        """What training adds to its loss for what `encode` made of the sources, or None where nothing is.

        A scalar in nats per sentence, the mean over the batch's sentences, its coefficient included: the loss
        of a batch is its cross-entropy in nats, summed over tokens, plus this times its sentences. It has a
        gradient, and is no part of a perplexity.
        """
        return None

    def fold_embedding_scale(self) -> None:
        """Puts a scale of embeddings into the weights that read them: the same model, with a product less.

        To the bit where the scale is a power of two. Nothing to do for a family that has none.
        """


def source_mask(source_ST: Tensor, source_length_S: Tensor) -> Tensor:
    """1.0 at source positions, 0.0 at padding: [S, T] float."""
    position_T = source_ST.new_ones(source_ST.shape).cumsum(dim=1) - 1
    return (position_T < source_length_S.unsqueeze(1)).float()


def sentence_length(mask_ST: Tensor) -> Tensor:
    """Positions in each sentence: [S, 1] float32."""
    return mask_ST.float().sum(dim=1, keepdim=True)
