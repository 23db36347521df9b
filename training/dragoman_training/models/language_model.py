"""A language model that attends over its own past (Daniluk et al. 2017, section 2.1): the target side alone.

Shapes: S sentences, K beam, R = S·K rows, T source positions (which nobody reads), U target positions, N past
positions, E embedding width, H units, A attention units.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.checks import require_at_least, require_positive, require_share
from dragoman_training.models.attention import AdditiveAttention
from dragoman_training.models.lstm import StackedLSTM
from dragoman_training.models.output import OutputLayer
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, VocabularyShape, source_mask


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig:
    """Sizes of an attention language model. Its data has no source side; it translates nothing."""

    family: Literal["lm"] = "lm"
    """Names this family in a recipe."""
    embedding_size: int = 256
    """Width of the embedding and of what the tied output layer reads."""
    embedding_std: float = 1.0
    """Standard deviation of the embedding at the start."""
    layers: int = 2
    """LSTM layers."""
    units: int = 512
    """Units of each layer."""
    attention_units: int = 256
    """Units of the attention's hidden layer."""
    span: int = 0
    """States just before its own that a state may look at, the paper's L; 0 is all of them."""
    dropout: float = 0.3
    """Probability of dropping an activation: of embeddings, between layers, and of what is predicted from."""

    def __post_init__(self) -> None:
        require_at_least(self, "model", embedding_size=1, layers=1, units=1, attention_units=1, span=0)
        require_share(self, "model", "dropout")
        require_positive(self, "model", "embedding_std")


class LanguageModel(Seq2Seq):
    """An LSTM whose top state looks at its own earlier states before it predicts.

    The state h attends over the states before it with the additive score (equations 1 to 3), and the features
    are tanh(W [context; h]) (equation 4). The first state looks at the zeros that the LSTM begins with.
    Differs from the paper: the output layer is tied to the embedding, behind a layer to its width.

    It stands under the interface of translation models: its source is whatever it is given, and it reads
    nothing of it. A step's `past` [R, N, H] holds the states so far and `keys` [R, N, A] what they are looked
    at by, and both grow by one; the attention that it returns is over the source, and so 0 everywhere.
    """

    def __init__(self, config: LanguageModelConfig, vocabulary: VocabularyShape) -> None:
        super().__init__()
        width, units = config.embedding_size, config.units
        self.config = config
        self.embedding = nn.Embedding(vocabulary.target_size, width)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        self.decoder = StackedLSTM(
            input_size=width, hidden_size=units, num_layers=config.layers, dropout=config.dropout
        )
        self.attention = AdditiveAttention(query_size=units, value_size=units, units=config.attention_units)
        self.combine = nn.Linear(2 * units, width, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        self.output = OutputLayer(self.embedding, vocabulary.never_produced)

    def encode(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensors, Tensors]:
        mask_ST = source_mask(source_ST, source_length_S)
        zeros_SH = self.embedding.weight.new_zeros(source_ST.shape[0], self.config.units)
        past_S1H = zeros_SH.unsqueeze(1)
        state: Tensors = {"past": past_S1H, "keys": self.attention.keys(past_S1H)}
        for layer in range(self.config.layers):
            state[f"hidden{layer}"] = state[f"cell{layer}"] = zeros_SH
        return {"mask": mask_ST}, state

    def step(self, token_SK: Tensor, memory: Tensors, state: Tensors) -> tuple[Tensor, Tensor, Tensors]:
        token_SKE = self.dropout(self.embedding(token_SK))
        top_RH, new = self.decoder.step(token_SKE.flatten(0, 1), state)
        top_R1H = top_RH.unsqueeze(1)
        features_R1E = self._look_back(top_R1H, state["past"], state["keys"])
        new["past"] = torch.cat([state["past"], top_R1H], dim=1)
        new["keys"] = torch.cat([state["keys"], self.attention.keys(top_R1H)], dim=1)
        nowhere_S1T = torch.zeros_like(memory["mask"]).unsqueeze(1)
        return features_R1E.squeeze(1), nowhere_S1T.expand(-1, token_SK.shape[1], -1), new

    def decode(self, memory: Tensors, state: Tensors, target_SU: Tensor) -> Tensor:
        top_SUH = self.decoder(self.dropout(self.embedding(target_SU)), state)
        past_SNH = torch.cat([state["past"], top_SUH[:, :-1]], dim=1)
        return self._look_back(top_SUH, past_SNH, self.attention.keys(past_SNH))

    def _look_back(self, top_SUH: Tensor, past_SNH: Tensor, keys_SNA: Tensor) -> Tensor:
        """Features [S, U, E] of the last U states, each of which looks at the states before it.

        `past_SNH` are all states but the last one: of the U, the last may look at all N, the one before it at
        all but the last of them, and so on.
        """
        queries, past = top_SUH.shape[1], past_SNH.shape[1]
        position_N = torch.arange(past, device=top_SUH.device)
        # How many states lie between: 0 is the one just before.
        age_UN = position_N[past - queries :].unsqueeze(1) - position_N
        seen_UN = age_UN >= 0
        if self.config.span:
            seen_UN = seen_UN & (age_UN < self.config.span)
        context_SUH, _ = self.attention(
            top_SUH,
            keys_SNA,
            past_SNH,
            torch.ones_like(past_SNH[:, :, 0]),
            seen_UN.unsqueeze(0).to(past_SNH.dtype),
        )
        joined_SUJ = torch.cat([context_SUH, self.dropout(top_SUH)], dim=-1)
        return self.dropout(self.combine(joined_SUJ).tanh())
