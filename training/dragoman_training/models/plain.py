"""Deep recurrent encoder-decoder without attention (Sutskever et al. 2014), of any recurrent layers.

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions, E embedding width, H units.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.checks import require_at_least, require_positive, require_share
from dragoman_training.models.layers import recurrent
from dragoman_training.models.layers.embedding import OutputLayer, VocabularyShape, embeddings, fold_scale
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, source_mask


@dataclass(frozen=True, kw_only=True)
class PlainConfig:
    """Sizes of a plain model."""

    family: Literal["plain"] = "plain"
    """Names this family in a recipe."""
    cell: recurrent.StackedCell = "lstm"
    """`lstm`, as in the paper; `gru`, the gated unit (Cho et al. 2014); `rnn`, the simple network
    h = tanh(W x + U h + b) (Elman 1990), or `rnn-relu`, the same with ReLU in place of tanh."""
    reverse_source: bool = True
    """Whether the encoder reads a source's tokens from the last to the first, its end still last (section
    3.3)."""
    embedding_size: int = 256
    """Width of embeddings and of what the tied output layer reads."""
    embedding_std: float = 1.0
    """Standard deviation of the embeddings at the start, as they are read."""
    embedding_scale: float = 1.0
    """What embeddings are multiplied by where they are read, not where the tied output layer reads them; the
    table begins so much smaller, and so learns that much faster."""
    layers: int = 4
    """Recurrent layers of the encoder, and of the decoder; the paper has 4."""
    units: int = 512
    """Units of each layer; the paper has 1,000."""
    dropout: float = 0.3
    """Probability of dropping an activation: of embeddings, between layers, and of the top state."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", embedding_size=1, layers=1, units=1)
        require_share(self, "model", "dropout")
        require_positive(self, "model", "embedding_std", "embedding_scale")


class Plain(Seq2Seq):
    """A decoder that knows of a source only the state that the encoder ends in.

    There is nothing to look at, so the attention that a step returns is 0 everywhere, and no word is aligned
    with another. Differs from the paper: dropout (it has none), and a linear layer from the
    top state to the width of the embedding, which the output layer is tied to.
    """

    def __init__(self, config: PlainConfig, vocabulary: VocabularyShape) -> None:
        super().__init__()
        width = config.embedding_size
        self.config = config
        self._embedding_scale = config.embedding_scale
        std = config.embedding_std / config.embedding_scale
        self.source_embedding, self.target_embedding = embeddings(vocabulary, width, std)
        sizes = config.cell, width, config.units, config.layers
        self.encoder = recurrent.ForwardEncoder(*sizes, dropout=config.dropout)
        self.decoder = recurrent.StackedRecurrent(*sizes, dropout=config.dropout)
        self.readout = nn.Linear(config.units, width)
        self.dropout = nn.Dropout(config.dropout)
        self.output = OutputLayer(self.target_embedding, vocabulary.never_produced)

    def fold_embedding_scale(self) -> None:
        first = self.encoder.layers[0]
        assert isinstance(first, recurrent.ForwardLayer)
        fold_scale(self._embedding_scale, first.rnn, self.decoder.layers[0])
        self._embedding_scale = 1.0

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        mask_ST = source_mask(source_ST, source_length_S)
        if self.config.reverse_source:
            source_ST = reverse(source_ST, source_length_S)
        ends = self.encoder(self.source_embedding(source_ST) * self._embedding_scale, source_length_S)
        state: Tensors = {}
        for layer, end in enumerate(ends):
            for name, value_SH in zip(("hidden", "cell"), end, strict=False):
                state[f"{name}{layer}"] = value_SH
        return {"mask": mask_ST}, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        token_SKE = self.dropout(self.target_embedding(token_SK) * self._embedding_scale)
        top_RH, new = self.decoder.step(token_SKE.flatten(0, 1), state)
        nowhere_S1T = torch.zeros_like(memory["mask"]).unsqueeze(1)
        return self._readout(top_RH), nowhere_S1T.expand(-1, token_SK.shape[1], -1), new

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        token_SUE = self.dropout(self.target_embedding(target_SU) * self._embedding_scale)
        return self._readout(self.decoder(token_SUE, state))

    def _readout(self, top_XH: Tensor) -> Tensor:
        return self.readout(self.dropout(top_XH))


def reverse(source_ST: Tensor, source_length_S: Tensor) -> Tensor:
    """Each sentence's tokens from the last to the first; its end and the padding stay where they are."""
    position_ST = torch.ones_like(source_ST).cumsum(dim=1) - 1
    words_S1 = source_length_S.unsqueeze(1) - 1
    mirror_ST = torch.where(position_ST < words_S1, words_S1 - 1 - position_ST, position_ST)
    return source_ST.gather(1, mirror_ST)
