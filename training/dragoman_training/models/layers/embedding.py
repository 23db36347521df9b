"""Embeddings of both sides, one table where the vocabulary is shared, and the output layer.

The output layer's table is the target embedding (Press and Wolf 2017) or one of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class VocabularyShape:
    """What a model must know of the two vocabularies."""

    source_size: int
    """Number of source pieces."""
    target_size: int
    """Number of target pieces."""
    shared: bool
    """Whether both sides use one vocabulary, and so one embedding."""
    bos: int
    """Target id that begins every sentence."""
    never_produced: tuple[int, ...]
    """Target ids that no translation holds, such as that one."""


def embeddings(vocabulary: VocabularyShape, width: int, std: float) -> tuple[nn.Embedding, nn.Embedding]:
    """Source and target embedding, the same module where the vocabulary is shared.

    `std` is what they begin with. As inputs small ones hardly move the gates, and the first epochs are lost;
    as a tied output layer large ones begin with logits that are far apart.
    """
    target = nn.Embedding(vocabulary.target_size, width)
    source = target if vocabulary.shared else nn.Embedding(vocabulary.source_size, width)
    for table in (source, target):
        nn.init.normal_(table.weight, std=std)
    return source, target


@torch.no_grad()
def fold_scale(scale: float, *readers: nn.Module) -> None:
    """Multiplies the weights that read an embedding, of linear layers or the first of recurrent ones."""
    for reader in readers:
        weight = reader.weight if isinstance(reader, nn.Linear) else reader.weight_ih_l0
        assert isinstance(weight, Tensor)
        weight.mul_(scale)


OUT_OF_REACH = -1e4
"""Added to the logits of pieces that are never produced; its exponential is 0 in every precision."""


class OutputLayer(nn.Module):
    """Features to logits: a product with the transposed table, and a bias."""

    never: Tensor

    def __init__(self, embedding: nn.Embedding, never_produced: tuple[int, ...]) -> None:
        super().__init__()
        self.embedding = embedding
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))
        never = torch.zeros(embedding.num_embeddings)
        never[list(never_produced)] = OUT_OF_REACH
        self.register_buffer("never", never, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Logits for decoding: [..., D] -> [..., V]; pieces never produced are out of reach."""
        return features @ self.embedding.weight.T + (self.bias + self.never)
