"""Which training pairs are of no use by their text alone, and how many were left out for which reason."""

from collections.abc import Mapping, Sequence

from dragoman_bundle.languages import primary_language

from dragoman_training.data.corpus import Corpus
from dragoman_training.recipe.data import FilterConfig, rank_languages

SHORT_CHARACTERS = 20
"""Up to so many on its longer side no pair is of too unequal lengths: "Oui." is "Yes, I do."."""
MANY_CHARACTERS = "of too many characters"
UNEQUAL = "of too unequal lengths"
COPIES = "with the same text on both sides"
DUPLICATES = "there already"
OTHER_SOURCE = "whose source side is in another language"
OTHER_TARGET = "whose target side is in another language"
TOO_LONG = "too long"
ONE_SIDED = "with an empty side"
REASONS = (TOO_LONG, ONE_SIDED, MANY_CHARACTERS, UNEQUAL, COPIES, DUPLICATES, OTHER_SOURCE, OTHER_TARGET)
"""Why pairs are left out, in the order in which it is reported."""
LANGUAGE_MARGIN = 8.0
"""The logarithm of likelihood by which another language must be more likely than the one asked for. A name or
a loan is little; a sentence of another language is more. Of Tatoeba's German, English, French and Spanish
sentences this leaves out 1 to 5 in 1,000, and 97 to 100% of those of another of the four."""
MAX_LANGUAGE_CHARACTERS = 500
"""Characters of a side by which its language is told."""


def reasons_to_leave_out(
    sources: Sequence[str], targets: Sequence[str], config: FilterConfig
) -> list[str | None]:
    """Why each pair is left out, or None. Duplicates, which take all pairs to find, are left in."""
    if config == FilterConfig(leave_out_duplicates=config.leave_out_duplicates):
        return [None] * len(targets)
    return [_reason(source, target, config) for source, target in zip(sources, targets, strict=True)]


def filtered(corpus: Corpus, config: FilterConfig) -> Corpus:
    """The pairs that the filter leaves in, without duplicates where it leaves these out."""
    if config == FilterConfig():
        return corpus
    reasons = reasons_to_leave_out(corpus.sources, corpus.targets, config)
    pairs = zip(corpus.sources, corpus.targets, strict=True)
    used = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]
    if config.leave_out_duplicates:
        used = list(dict.fromkeys(used))
    return Corpus([source for source, _ in used], [target for _, target in used], corpus.num_one_sided)


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
    ranked = rank_languages(text[:MAX_LANGUAGE_CHARACTERS].lower())
    return ranked[0][1] - dict(ranked)[primary_language(language)] > LANGUAGE_MARGIN


def show_left_out(left_out: Mapping[str, int]) -> str:
    """How many pairs were left out by reason, for people; empty for none."""
    return ", ".join(f"{left_out[reason]:,} {reason}" for reason in REASONS if left_out.get(reason))
