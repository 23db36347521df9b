"""Embeddings of both sides: one table where the vocabulary is shared."""

import torch
from torch import Tensor, nn

from dragoman_training.models.seq2seq import VocabularyShape


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
