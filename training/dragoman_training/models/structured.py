"""A source condensed by structured self-attention (Lin et al. 2017) into vectors that a decoder reads.

Shapes: S sentences, K beam, R = S·K rows, Q queries a sentence, T source positions, N annotation vectors (the
paper's r), A units of the self-attention's hidden layer (its d_a), H decoder units, M = 2 · encoder units,
E embedding width.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.checks import require_at_least
from dragoman_training.models.attentional import AttentionalConfig, AttentionalLSTM
from dragoman_training.models.layers.attention import DotAttention, GeneralAttention
from dragoman_training.models.layers.embedding import VocabularyShape
from dragoman_training.models.seq2seq import Tensors


@dataclass(frozen=True, kw_only=True)
class StructuredConfig(AttentionalConfig):
    """Sizes of a model with structured self-attention."""

    family: Literal["structured"] = "structured"
    """Names this family in a recipe."""
    annotations: int = 30
    """Vectors that a source is condensed to, however long it is; the paper has 30."""
    annotation_units: int = 350
    """Units of the self-attention's hidden layer; the paper has 350."""
    redundancy_penalty: float = 1.0
    """Weight in the loss of how much the vectors look at the same positions; the paper has 1, or 0.3."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, "model", annotations=1, annotation_units=1, redundancy_penalty=0)


class SelfAnnotation(nn.Module):
    """A = softmax(W2 tanh(W1 H)) and M = A H (Lin et al. 2017, equations 6 and 7).

    Each row of W2 is a query that every sentence is asked, and tanh(W1 H) are the keys.
    """

    def __init__(self, *, states_size: int, units: int, annotations: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(states_size, units, bias=False)
        self.queries = nn.Parameter(torch.empty(annotations, units))
        nn.init.xavier_uniform_(self.queries)
        self.attention = DotAttention()

    def forward(self, states_STM: Tensor, mask_ST: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the vectors [S, N, M] and where each looks [S, N, T]."""
        keys_STA = self.hidden(states_STM).tanh()
        queries_SNA = self.queries.unsqueeze(0).expand(states_STM.shape[0], -1, -1)
        return self.attention(queries_SNA, keys_STA, states_STM, mask_ST)


class Structured(AttentionalLSTM):
    """Luong's decoder with the `general` score over annotation vectors instead of source positions.

    The paper reads its vectors with a classifier; a decoder that attends over them makes it translate. The
    weights over the source that a caller sees are the decoder's over the vectors times the vectors' own.
    """

    def __init__(self, config: StructuredConfig, vocabulary: VocabularyShape) -> None:
        memory_size = 2 * config.encoder_units
        attention = partial(GeneralAttention, query_size=config.decoder_units, value_size=memory_size)
        super().__init__(config, vocabulary, attention, context_size=memory_size)
        self.config = config
        units, annotations = config.annotation_units, config.annotations
        self.annotation = SelfAnnotation(states_size=memory_size, units=units, annotations=annotations)

    def remember(self, states_STM: Tensor, mask_ST: Tensor) -> Tensors:
        vectors_SNM, weights_SNT = self.annotation(states_STM, mask_ST)
        memory = {"keys": self.attention.keys(vectors_SNM), "values": vectors_SNM}
        return {**memory, "annotation": weights_SNT.transpose(1, 2), "mask": mask_ST}

    def look(self, top_SQH: Tensor, memory: Tensors, position_SQ: Tensor | None) -> tuple[Tensor, Tensor]:
        vectors_SNM = memory["values"]
        all_SN = torch.ones_like(vectors_SNM[:, :, 0])
        return self.attention(top_SQH, memory["keys"], vectors_SNM, all_SN)

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        features_RE, attention_SKN, state = super().step(token_SK, memory, state)
        # Source positions as rows, and a query of zeros to spare, so that the product stays one of matrices:
        # onnxruntime then sums in the same order whatever the beam and the padding.
        spared_SKN = functional.pad(attention_SKN, (0, 0, 0, 1))
        weights_STK = (memory["annotation"] @ spared_SKN.transpose(1, 2))[:, :, :-1]
        return features_RE, weights_STK.transpose(1, 2), state

    def penalty(self, memory: Tensors) -> Tensor:
        """The redundancy of the annotation vectors, |A·Aᵀ - I|² (equation 8), times its coefficient."""
        weights_STN = memory["annotation"]
        # The product would be rounded where training computes in bf16 or fp16.
        with torch.autocast(weights_STN.device.type, enabled=False):
            overlap_SNN = weights_STN.transpose(1, 2) @ weights_STN
        identity_NN = torch.eye(overlap_SNN.shape[1], device=overlap_SNN.device)
        redundancy_S = (overlap_SNN - identity_NN).square().sum(dim=(1, 2))
        return self.config.redundancy_penalty * redundancy_S.mean()
