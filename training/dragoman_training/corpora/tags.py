"""Whether a German text addresses somebody as "du" or as "Sie"."""

import re

FORMAL = "\ue000"
INFORMAL = "\ue001"
MACHINE = "\ue002"
"""What a source begins with, before a space, that is translated formally, informally, or that a machine wrote
(Caswell et al. 2019): characters for private use, which `vocabulary.tags` makes pieces of their own."""

_INFORMAL = re.compile(r"\b(?:[Dd]u|[Dd]ich|[Dd]ir|[Dd]ein(?:e[nmrs]?)?|[Ee]uch|[Ee]uer|[Ee]ure[nmrs]?)\b")
_FORMAL_WITHIN = re.compile(r"[\w,;)\"“’'–-] (?:Sie|Ihnen|Ihr(?:e[nmrs]?)?)\b")
_FORMAL = re.compile(r"\b(?:Sie|Ihnen|Ihr(?:e[nmrs]?)?)\b")
_YOU = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)
_OTHERS = re.compile(r"\b(?:she|her|hers|they|them|their|theirs|it|its|he|his)\b", re.IGNORECASE)


def formality(english: str, german: str) -> str | None:
    """The tag of the form of address, or None where there is none, both, or it is not sure."""
    informal = bool(_INFORMAL.search(german))
    formal = bool(_FORMAL_WITHIN.search(german))
    if not formal and not informal and _YOU.search(english) and not _OTHERS.search(english):
        # At the beginning of a sentence "Sie" may be "she" or "they".
        formal = bool(_FORMAL.search(german))
    return None if formal == informal else FORMAL if formal else INFORMAL
