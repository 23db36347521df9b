"""What the study found about one model; plain values that outlive the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.head import ChosenHead
from dragoman_training.classics.study.scores import Scorer
from dragoman_training.decoding.forced_attention import ForcedAttention
from dragoman_training.recipe.settings import Recipe


@dataclass(frozen=True, kw_only=True)
class Example:
    """One sentence as one model reads and translates it."""

    source_pieces: tuple[str, ...]
    """What it read, its end included."""
    target_pieces: tuple[str, ...]
    """What it said: a piece for each row of its attention."""
    attention: ForcedAttention
    """Where it looked."""


@dataclass(frozen=True, kw_only=True)
class Sharpness:
    """How a model's attention is spread, as means over all target pieces of the test set."""

    largest: float
    """Weight of the source piece that is looked at most."""
    entropy_bits: float
    """Entropy of the weights, scaled to add up to 1."""
    end_share: float
    """Weight on the end of the source sentence."""
    total: float
    """All weights together; below 1 only in local-p, whose Gaussian takes something away."""


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Where another model looks, made to say local-p's translations of the test set."""

    label: str
    """What the page calls it."""
    most_looked_at: NDArray[np.float32]
    """For every target piece but ends the source position with its largest weight, from 1."""


@dataclass(frozen=True, kw_only=True)
class Centres:
    """What local-p predicted for every target piece of the test set but ends; positions count from 1."""

    target_position: NDArray[np.float32]
    """Place of the target piece in its translation."""
    source_length: NDArray[np.float32]
    """Pieces of its source, the end included."""
    predicted: NDArray[np.float32]
    """Centre of the window."""
    reach: int
    """Positions of the window to either side."""
    witness: Witness | None = None
    """What the predictions are held against; None where the study has nothing."""

    @property
    def monotonic(self) -> NDArray[np.float32]:
        """The centres that local-m would take (Luong et al. 2015, section 3.2)."""
        return np.minimum(self.target_position, self.source_length)

    @property
    def at_words(self) -> NDArray[np.bool_]:
        """Where the witness looks at a word, rather than at the sentence's end."""
        assert self.witness is not None
        return self.witness.most_looked_at < self.source_length


@dataclass(frozen=True, kw_only=True)
class Findings:
    """One model's part in the study."""

    label: str
    """What the page calls it."""
    recipe: Recipe
    """How it was trained."""
    progress: dict[str, Any]
    """How far, and the validations on the way."""
    num_parameters: int
    """Parameters of the model."""
    vocabularies: tuple[bytes, bytes]
    """The source's tokenizer and the target's: perplexities are comparable where that is the same."""
    longest_trained: int | None
    """Words of the longest source that it was trained on; None where that can't be known."""
    tokens: tuple[tuple[int, ...], ...]
    """Its translations of the test set, in its order, as ids without eos."""
    translations: tuple[str, ...]
    """The same as text."""
    cased: Scorer
    """BLEU of its parts."""
    lower_cased: Scorer
    """The same without case."""
    head: ChosenHead | None
    """Of which head its attention is; None but of a Transformer."""
    sharpness: Sharpness | None
    """How its attention is spread; None without attention."""
    centres: Centres | None
    """What local-p predicted; None for other models."""
    examples: tuple[Example, ...]
    """The sentences of the heat maps."""


def sharpness_of(attentions: Sequence[ForcedAttention]) -> Sharpness:
    """Means over all target pieces."""
    largest, entropy, end, total = [], [], [], []
    for attention in attentions:
        weights_UT = attention.weights_UT.astype(np.float64)
        total_U1 = weights_UT.sum(axis=1, keepdims=True)
        share_UT = weights_UT / total_U1
        largest.append(weights_UT.max(axis=1))
        entropy.append(-(share_UT * np.log2(np.where(share_UT > 0, share_UT, 1.0))).sum(axis=1))
        end.append(weights_UT[:, -1])
        total.append(total_U1[:, 0])
    means = [float(np.concatenate(values).mean()) for values in (largest, entropy, end, total)]
    return Sharpness(largest=means[0], entropy_bits=means[1], end_share=means[2], total=means[3])


def centres_of(attentions: Sequence[ForcedAttention], reach: int) -> Centres | None:
    """All predictions of a local-p model but those of ends, which come from no word; None of another."""
    rows = [
        (
            np.arange(1, len(attention.centre_U)),
            np.full(len(attention.centre_U) - 1, attention.weights_UT.shape[1]),
            attention.centre_U[:-1],
        )
        for attention in attentions
        if attention.centre_U is not None
    ]
    if not rows:
        return None
    target, length, predicted = (
        np.concatenate(column).astype(np.float32) for column in zip(*rows, strict=True)
    )
    return Centres(
        target_position=target,
        source_length=length,
        predicted=predicted,
        reach=reach,
    )
