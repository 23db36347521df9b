"""Recurrent encoder-decoder that learns to align (Bahdanau et al. 2015).

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions, E embedding width,
H decoder units, M = 2 · encoder units, G = gates · H.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.checks import require_at_least, require_positive, require_share
from dragoman_training.models.layers.attention import AdditiveAttention
from dragoman_training.models.layers.embedding import OutputLayer, VocabularyShape, embeddings
from dragoman_training.models.layers.recurrent import BidirectionalEncoder, Cell, GRUCell, LSTMCell
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, source_mask


@dataclass(frozen=True, kw_only=True)
class BahdanauConfig:
    """Sizes of a Bahdanau model."""

    family: Literal["bahdanau"] = "bahdanau"
    """Names this family in a recipe."""
    cell: Cell = "gru"
    """Recurrent cell of encoder and decoder; the paper's is a GRU."""
    embedding_size: int = 256
    """Width of embeddings and of the readout that the tied output layer reads."""
    embedding_std: float = 1.0
    """Standard deviation of what the network reads of an embedding at the start. The table, which is the
    output layer too, begins with that over the root of the width."""
    encoder_layers: int = 1
    """Bidirectional layers of the encoder; the paper has one."""
    encoder_units: int = 256
    """Units of the encoder per direction."""
    decoder_units: int = 512
    """Units of the decoder."""
    attention_units: int = 256
    """Units of the alignment model's hidden layer."""
    dropout: float = 0.3
    """Probability of dropping an activation: of embeddings, between layers, and around the readout."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", embedding_size=1, encoder_layers=1, encoder_units=1)
        require_at_least(self, "model", decoder_units=1, attention_units=1)
        require_share(self, "model", "dropout")
        require_positive(self, "model", "embedding_std")


class Bahdanau(Seq2Seq):
    """A recurrent decoder that reads, at each step, a context aligned by its last state.

    The alignment model scores the previous state s_{i-1} against every annotation (equation 6); state and
    readout then see the context: s_i = f(s_{i-1}, y_{i-1}, c_i), p = g(y_{i-1}, s_i, c_i) (equation 4), with
    one maxout layer before the output (appendix A.2.2). Differs from the paper: dropout (it has none); the
    encoder may have several layers, and the cell be an LSTM; the readout sees s_i, as in equation 4, where
    the appendix prints s_{i-1}; a GRU's reset gate comes after its product, as in `GRUCell`; and the output
    layer is tied to the embedding. Embeddings are therefore multiplied by the root of the width where they
    are read (Vaswani et al. 2017, section 3.4): the readout hands on y_{i-1} itself, unbounded, so that a
    table as large as what is read would begin with logits far apart.
    """

    def __init__(self, config: BahdanauConfig, vocabulary: VocabularyShape) -> None:
        super().__init__()
        width, units, memory_size = config.embedding_size, config.decoder_units, 2 * config.encoder_units
        gates = (4 if config.cell == "lstm" else 3) * units
        self.config = config
        self.embedding_scale = math.sqrt(width)
        std = config.embedding_std / self.embedding_scale
        self.source_embedding, self.target_embedding = embeddings(vocabulary, width, std)
        sizes = config.cell, width, config.encoder_units, config.encoder_layers
        self.encoder = BidirectionalEncoder(*sizes, dropout=config.dropout)
        self.bridge = nn.Linear(config.encoder_units, units)
        attention_units = config.attention_units
        self.attention = AdditiveAttention(query_size=units, value_size=memory_size, units=attention_units)
        self.token_input = nn.Linear(width, gates)
        self.context_input = nn.Linear(memory_size, gates, bias=False)
        self.cell: LSTMCell | GRUCell = LSTMCell(units) if config.cell == "lstm" else GRUCell(units)
        self.token_readout = nn.Linear(width, 2 * width)
        self.row_readout = nn.Linear(memory_size + units, 2 * width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.output = OutputLayer(self.target_embedding, vocabulary.never_produced)

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        token_STE = self.source_embedding(source_ST) * self.embedding_scale
        values_STM, _, back_SH = self.encoder(token_STE, source_length_S)
        memory = {"keys": self.attention.keys(values_STM), "values": values_STM}
        memory["mask"] = source_mask(source_ST, source_length_S)
        state = {"hidden": self.bridge(back_SH).tanh()}
        if self.config.cell == "lstm":
            state["cell"] = torch.zeros_like(state["hidden"])
        return memory, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        token_SKE = self._read(token_SK)
        context_SKM, attention_SKT, state = self._advance(self.token_input(token_SKE), memory, state)
        hidden_SKH = state["hidden"].unflatten(0, token_SK.shape)
        features_SKE = self._readout(token_SKE, context_SKM, hidden_SKH)
        return features_SKE.flatten(0, 1), attention_SKT, state

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        token_SUE = self._read(target_SU)
        contexts, hiddens = [], []
        for projected_S1G in self.token_input(token_SUE).split(1, dim=1):
            context_S1M, _, state = self._advance(projected_S1G, memory, state)
            contexts.append(context_S1M)
            hiddens.append(state["hidden"])
        return self._readout(token_SUE, torch.cat(contexts, dim=1), torch.stack(hiddens, dim=1))

    def _read(self, token: Tensor) -> Tensor:
        """Target tokens as the decoder reads them: [...] int64 -> [..., E]."""
        return self.dropout(self.target_embedding(token) * self.embedding_scale)

    def _advance(
        self, projected_SKG: Tensor, memory: Tensors, state: Tensors
    ) -> tuple[Tensor, Tensor, Tensors]:
        """One step of all rows from their projected tokens: context, attention and the new state."""
        query_SKH = state["hidden"].unflatten(0, projected_SKG.shape[:2])
        looked = self.attention(query_SKH, memory["keys"], memory["values"], memory["mask"])
        inputs_RG = (projected_SKG + self.context_input(looked[0])).flatten(0, 1)
        if isinstance(self.cell, LSTMCell):
            hidden_RH, cell_RH = self.cell(inputs_RG, state["hidden"], state["cell"])
            return *looked, {"hidden": hidden_RH, "cell": cell_RH}
        return *looked, {"hidden": self.cell(inputs_RG, state["hidden"])}

    def _readout(self, token_XE: Tensor, context_XM: Tensor, hidden_XH: Tensor) -> Tensor:
        """The maxout layer before the output: pairs of units, the larger of each."""
        rows_XJ = self.dropout(torch.cat([context_XM, hidden_XH], dim=-1))
        pairs = self.token_readout(token_XE) + self.row_readout(rows_XJ)
        return self.dropout(pairs.unflatten(-1, (-1, 2)).amax(dim=-1))
