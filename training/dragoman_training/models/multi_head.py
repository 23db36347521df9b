"""Multi-head attention (Vaswani et al. 2017) at the top of a recurrent decoder (Luong et al. 2015).

Shapes: S sentences, Q queries a sentence, T source positions, H decoder units, M = 2 · encoder units.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Tensor

from dragoman_training.checks import require_at_least
from dragoman_training.models.attentional import AttentionalConfig, AttentionalLSTM
from dragoman_training.models.layers.attention import MultiHeadAttention
from dragoman_training.models.layers.embedding import VocabularyShape
from dragoman_training.models.seq2seq import Tensors


@dataclass(frozen=True, kw_only=True)
class MultiHeadConfig(AttentionalConfig):
    """Sizes of a recurrent model with multi-head attention."""

    family: Literal["multi-head"] = "multi-head"
    """Names this family in a recipe."""
    attention_units: int = 512
    """Width of queries, keys and values, of all heads together."""
    heads: int = 8
    """Heads that share it; a divisor of `attention_units`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, "model", attention_units=1, heads=1)
        if self.attention_units % self.heads:
            divisors = [str(n) for n in range(1, self.attention_units + 1) if self.attention_units % n == 0]
            raise ValueError(
                f"model.heads is {self.heads}, which does not divide model.attention_units, "
                f"{self.attention_units}; take one of {', '.join(divisors)}"
            )


class MultiHead(AttentionalLSTM):
    """Luong's decoder asking with several heads; keys and values are projected apart, once per sentence."""

    def __init__(self, config: MultiHeadConfig, vocabulary: VocabularyShape) -> None:
        sizes = {"query_size": config.decoder_units, "value_size": 2 * config.encoder_units}
        attention = partial(MultiHeadAttention, **sizes, units=config.attention_units, heads=config.heads)
        super().__init__(config, vocabulary, attention, context_size=config.attention_units)
        self.config = config

    def remember(self, states_STM: Tensor, mask_ST: Tensor) -> Tensors:
        keys, values = self.attention.keys_and_values(states_STM)
        return {"keys": keys, "values": values, "mask": mask_ST}

    def look(self, top_SQH: Tensor, memory: Tensors, position_SQ: Tensor | None) -> tuple[Tensor, Tensor]:
        return self.attention(top_SQH, memory["keys"], memory["values"], memory["mask"])
