"""Guided alignment: attention learns from an aligner (Chen et al. 2016; Garg et al. 2019).

Shapes: S sentences, U target positions, T source positions.
"""

from dataclasses import dataclass

from torch import Tensor

from dragoman_training.checks import require_at_least
from dragoman_training.data.token_ids import Learn

LEAST_WEIGHT = 1e-6
"""An attention below it costs no more."""


@dataclass(frozen=True, kw_only=True)
class GuidedAlignmentConfig:
    """Whether attention is taught to look where words come from. Off by default.

    Before the first step an HMM in both directions links the tokens of the training pairs; that needs the
    extra `align`. Taught is a recurrent decoder's attention, and of a Transformer one head of the last layer
    but one.
    """

    weight: float = 0.0
    """Weight of that loss beside the translation's, each a mean over target tokens; 0.05 to 0.3 are usual,
    0 is off."""
    max_pairs: int = 500_000
    """Training pairs that the HMM learns from; of a larger corpus so many, evenly spread."""

    def __post_init__(self) -> None:
        require_at_least(self, "guided_alignment", weight=0, max_pairs=1)


def guided_loss(attention_SUT: Tensor, guide_SUT: Tensor) -> Tensor:
    """Cross-entropy in nats of what is looked at against the links, summed (Garg et al. 2019, equation 6).

    The links of a target token have weights that sum up to one; a token without links costs nothing.
    """
    return -(guide_SUT * attention_SUT.float().clamp(min=LEAST_WEIGHT).log()).sum()


def load_linker() -> Learn:
    """What learns to link tokens. Raises ValueError where its extra is not installed."""
    try:
        from dragoman_training.alignment.pieces import TokenLinker
    except ImportError as error:
        raise ValueError(
            f"guided_alignment.weight needs an aligner, and {error.name} is not installed: install the extra "
            "`align` beside `training`, or set it to 0"
        ) from error
    return TokenLinker
