"""Which training pairs are of no use by their text alone."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from dragoman_bundle.languages import primary_language

from dragoman_training.checks import require_at_least

SHORT_CHARACTERS = 20
"""Up to so many on its longer side no pair is of too unequal lengths: "Oui." is "Yes, I do."."""
MANY_CHARACTERS = "of too many characters"
UNEQUAL = "of too unequal lengths"
COPIES = "with the same text on both sides"
DUPLICATES = "there already"
OTHER_SOURCE = "whose source side is in another language"
OTHER_TARGET = "whose target side is in another language"
LANGUAGE_MARGIN = 8.0
"""By how much, as a logarithm of likelihood, another language must be more likely than the one asked for. A
name or a loan is little; a sentence of another language is more. Of Tatoeba's German, English, French and
Spanish sentences this leaves out 1 to 5 in 1,000, and 97 to 100% of those of another of the four."""
MAX_LANGUAGE_CHARACTERS = 500
"""Of a side so many are looked at."""


class _Identifier(Protocol):
    """As much of py3langid's as is used."""

    def rank(self, text: str) -> Sequence[tuple[str, float]]:
        """By language a logarithm of likelihood, the largest first."""


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
    source_language: str = ""
    """Pairs whose source side clearly is in another language than this are left out, such as "de"; none for
    "". It takes a core a second for some 4,000 pairs."""
    target_language: str = ""
    """The same of the target side."""

    def __post_init__(self) -> None:
        require_at_least(self, "filter", max_characters=0, max_length_ratio=0)
        if 0 < self.max_length_ratio < 1:
            raise ValueError(
                f"filter.max_length_ratio is {self.max_length_ratio:g}, but the longer side has at least "
                "as many characters as the shorter: it must be at least 1, or 0 for no limit"
            )
        for name in ("source_language", "target_language"):
            language = getattr(self, name)
            if language and primary_language(language) not in _languages():
                raise ValueError(
                    f'filter.{name} is "{language}", which py3langid does not tell; it tells '
                    f"{', '.join(sorted(_languages()))}"
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
    if _is_in_another(source, config.source_language):
        return OTHER_SOURCE
    if _is_in_another(target, config.target_language):
        return OTHER_TARGET
    return None


def _is_in_another(text: str, language: str) -> bool:
    if not language:
        return False
    # In capitals everything looks like one language or another.
    ranked = _identifier().rank(text[:MAX_LANGUAGE_CHARACTERS].lower())
    asked = dict(ranked)[primary_language(language)]
    return ranked[0][1] - asked > LANGUAGE_MARGIN


def _languages() -> frozenset[str]:
    return frozenset(language for language, _ in _identifier().rank("a"))


@functools.cache
def _identifier() -> _Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return cast(_Identifier, LanguageIdentifier.from_model_file(MODEL_FILE))
