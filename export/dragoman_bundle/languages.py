"""What must be known of a language beside its code."""

_UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "yue", "zh"})


def writes_spaces(language: str) -> bool:
    """Whether words, and sentences, stand apart; `language` is a BCP 47 code."""
    return language.lower().partition("-")[0] not in _UNSPACED
