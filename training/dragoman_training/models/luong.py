"""Stacked LSTM encoder-decoder with global attention and input feeding (Luong et al. 2015).

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions, E embedding width,
H decoder units, M = 2 · encoder units.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.checks import require_at_least, require_share
from dragoman_training.models.attention import GeneralAttention
from dragoman_training.models.embedding import embeddings
from dragoman_training.models.output import OutputLayer
from dragoman_training.models.recurrent import BidirectionalEncoder, LSTMCell
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, VocabularyShape, source_mask


@dataclass(frozen=True, kw_only=True)
class LuongConfig:
    """Sizes of a Luong model."""

    family: Literal["luong"] = "luong"
    """Names this family in a recipe."""
    embedding_size: int = 256
    """Width of embeddings and of the attentional state that the tied output layer reads."""
    embedding_std: float = 0.25
    """Standard deviation of the embeddings at the start."""
    encoder_layers: int = 2
    """Bidirectional layers of the encoder."""
    encoder_units: int = 256
    """Units of the encoder a direction."""
    decoder_layers: int = 2
    """Layers of the decoder."""
    decoder_units: int = 512
    """Units of the decoder a layer."""
    dropout: float = 0.3
    """Probability of dropping an activation between layers."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", embedding_size=1, encoder_layers=1, encoder_units=1)
        require_at_least(self, "model", decoder_layers=1, decoder_units=1)
        require_share(self, "model", "dropout")
        if not 0 < self.embedding_std < math.inf:
            raise ValueError(f"model.embedding_std is {self.embedding_std}, but must be above 0")


class Luong(Seq2Seq):
    """A stacked LSTM decoder whose top state attends over a bidirectional LSTM encoder.

    The attentional state h̃ = tanh(W [context; hidden]) (equation 5) feeds the output layer and, at the next
    step, the first layer (section 3.3). Differs from the paper: the encoder reads in both directions, a tanh
    layer leads from its last states to the decoder's first, and the output layer is tied to the embedding.
    """

    def __init__(self, config: LuongConfig, vocabulary: VocabularyShape) -> None:
        super().__init__()
        width, units, memory_size = config.embedding_size, config.decoder_units, 2 * config.encoder_units
        self.config = config
        self.source_embedding, self.target_embedding = embeddings(vocabulary, width, config.embedding_std)
        self.encoder = BidirectionalEncoder(
            "lstm",
            input_size=width,
            hidden_size=config.encoder_units,
            num_layers=config.encoder_layers,
            dropout=config.dropout,
        )
        self.bridge = nn.Linear(memory_size, 2 * config.decoder_layers * units)
        self.token_input = nn.Linear(width, 4 * units)
        self.feed_input = nn.Linear(width, 4 * units, bias=False)
        self.layer_inputs = nn.ModuleList(
            nn.Linear(units, 4 * units) for _ in range(config.decoder_layers - 1)
        )
        self.cells = nn.ModuleList(LSTMCell(units) for _ in range(config.decoder_layers))
        self.attention = GeneralAttention(query_size=units, value_size=memory_size)
        self.combine = nn.Linear(memory_size + units, width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.output = OutputLayer(
            self.target_embedding, (vocabulary.pad_id, vocabulary.unk_id, vocabulary.bos_id)
        )

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        values_STM, ahead_SH, back_SH = self.encoder(self.source_embedding(source_ST), source_length_S)
        memory = {
            "keys": self.attention.keys(values_STM),
            "values": values_STM,
            "mask": source_mask(source_ST, source_length_S),
        }
        first = self.bridge(torch.cat([ahead_SH, back_SH], dim=-1)).tanh()
        hidden_and_cell = first.chunk(2 * self.config.decoder_layers, dim=-1)
        state = {"feed": first.new_zeros(first.shape[0], self.config.embedding_size)}
        for layer in range(self.config.decoder_layers):
            state[f"hidden{layer}"] = hidden_and_cell[2 * layer]
            state[f"cell{layer}"] = hidden_and_cell[2 * layer + 1]
        return memory, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        projected_SKG = self.token_input(self.target_embedding(token_SK))
        attention_SKT, state = self._advance(projected_SKG, memory, state)
        return state["feed"], attention_SKT, state

    def forward(self, source_ST: Tensor, source_length_S: Tensor, target_SU: Tensor) -> Tensor:
        memory, state = self.encode(source_ST, source_length_S)
        projected_SUG = self.token_input(self.dropout(self.target_embedding(target_SU)))
        features = []
        for projected_S1G in projected_SUG.split(1, dim=1):
            _, state = self._advance(projected_S1G, memory, state)
            features.append(state["feed"])
        return torch.stack(features, dim=1)

    def _advance(self, projected_SKG: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensors]:
        """One step of all rows from their projected tokens; the new `feed` is the attentional state."""
        sentences, beam, _ = projected_SKG.shape
        inputs_RG = projected_SKG.flatten(0, 1) + self.feed_input(state["feed"])
        new: Tensors = {}
        for layer, cell in enumerate(self.cells):
            hidden_RH, new[f"cell{layer}"] = cell(inputs_RG, state[f"hidden{layer}"], state[f"cell{layer}"])
            new[f"hidden{layer}"] = hidden_RH
            if layer < len(self.layer_inputs):
                inputs_RG = self.layer_inputs[layer](self.dropout(hidden_RH))
        top_SKH = hidden_RH.unflatten(0, (sentences, beam))
        context_SKM, attention_SKT = self.attention(top_SKH, memory["keys"], memory["values"], memory["mask"])
        joined_RJ = torch.cat([context_SKM, top_SKH], dim=-1).flatten(0, 1)
        new["feed"] = self.dropout(self.combine(joined_RJ).tanh())
        return attention_SKT, new
