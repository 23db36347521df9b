"""Subword regularisation: other segmentations of the same sentences in every epoch (Kudo 2018)."""

from dataclasses import dataclass

from dragoman_training.checks import require_at_least, require_at_most, require_default


@dataclass(frozen=True, kw_only=True)
class SubwordSamplingConfig:
    """Which sides of the training pairs are segmented anew each epoch. Validation never is.

    With a unigram vocabulary this is subword regularisation (Kudo 2018, section 3); with a BPE one it is
    BPE-dropout (Provilkov et al. 2020). Sampled segmentations are longer, so an epoch has more batches; one
    longer than `data.max_tokens` gives way to the best one.
    """

    source: bool = False
    """Whether the source side is sampled."""
    target: bool = False
    """Whether the target side is sampled."""
    alpha: float = 0.2
    """Unigram: the power that a segmentation's probability is raised to; 0 makes all equal, a large one keeps
    the best. BPE: the probability of leaving a merge out."""
    nbest_size: int = -1
    """Unigram: how many of the best segmentations are drawn from; -1 draws from all."""

    def __post_init__(self) -> None:
        require_at_least(self, "subword_sampling", alpha=0)
        require_at_most(self, "subword_sampling", alpha=1e6)
        if self.nbest_size != -1 and not 2 <= self.nbest_size <= 512:
            raise ValueError(
                f"subword_sampling.nbest_size is {self.nbest_size}, but must be from 2 to 512, or -1 for all"
            )
        if not (self.source or self.target):
            because = "neither subword_sampling.source nor subword_sampling.target is true"
            require_default(self, "subword_sampling", "alpha", "nbest_size", because=because)
