"""The output layer, whose table is the target embedding (Press and Wolf 2017) or one of its own."""

import torch
from torch import Tensor, nn

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
