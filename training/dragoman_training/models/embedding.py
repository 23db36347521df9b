"""Embeddings of both sides: one table where the vocabulary is shared."""

from torch import nn

from dragoman_training.models.seq2seq import VocabularyShape


def embeddings(vocabulary: VocabularyShape, width: int) -> tuple[nn.Embedding, nn.Embedding]:
    """Source and target embedding, the same module where the vocabulary is shared.

    Scaled so that a tied output layer begins with logits of about unit variance.
    """
    target = nn.Embedding(vocabulary.target_size, width)
    source = target if vocabulary.shared else nn.Embedding(vocabulary.source_size, width)
    for table in (source, target):
        nn.init.normal_(table.weight, std=width**-0.5)
    return source, target
