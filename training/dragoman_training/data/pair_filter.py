"""Which training pairs are of no use by their text alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_training.recipe.checks import require_at_least

SHORT_CHARACTERS = 20
"""Up to so many on its longer side no pair is of too unequal lengths: "Oui." is "Yes, I do."."""
MANY_CHARACTERS = "of too many characters"
UNEQUAL = "of too unequal lengths"
COPIES = "with the same text on both sides"
DUPLICATES = "there already"


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Which training pairs are left out, beside those with an empty side and those of `data.max_tokens`.

    How many, and why, is said before the first step, and kept in the checkpoint. Validation pairs stay.
    """

    max_characters: int = 0
    """Pairs with a side of more characters are left out; 0 for no limit."""
    max_length_ratio: float = 0.0
    """Pairs of which one side has more than that many times the other's characters are left out, unless
    both have 20 or fewer; 0 for no limit."""
    leave_out_copies: bool = False
    """Whether pairs are left out that have the same text on both sides, letters' case aside."""
    leave_out_duplicates: bool = False
    """Whether of equal pairs all but the first are left out, in whichever files they are."""

    def __post_init__(self) -> None:
        require_at_least(self, "filter", max_characters=0, max_length_ratio=0)
        if 0 < self.max_length_ratio < 1:
            raise ValueError(
                f"filter.max_length_ratio is {self.max_length_ratio:g}, but the longer side has at least "
                "as many characters as the shorter: it must be at least 1, or 0 for no limit"
            )


def reasons_to_leave_out(
    sources: Sequence[str], targets: Sequence[str], config: FilterConfig
) -> list[str | None]:
    """Of each pair why it is left out, or None. Duplicates are another's matter: it takes all pairs."""
    if config == FilterConfig(leave_out_duplicates=config.leave_out_duplicates):
        return [None] * len(targets)
    return [_reason(source, target, config) for source, target in zip(sources, targets, strict=True)]


def _reason(source: str, target: str, config: FilterConfig) -> str | None:
    shorter, longer = sorted((len(source), len(target)))
    if 0 < config.max_characters < longer:
        return MANY_CHARACTERS
    if longer > SHORT_CHARACTERS and 0 < config.max_length_ratio * shorter < longer:
        return UNEQUAL
    if config.leave_out_copies and source.casefold() == target.casefold():
        return COPIES
    return None
