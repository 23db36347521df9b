"""How a model is decoded unless a request says otherwise."""

import math
from dataclasses import dataclass

from dragoman_bundle.names import MAX_BEAM_SIZE, MAX_LENGTH_PENALTY, check_number

_MAX_TOKENS = 1_000_000
"""More than any sentence has: a model that says it takes more of them says nothing."""


@dataclass(frozen=True, kw_only=True)
class DecodingDefaults:
    """How the search runs where a request does not say, and the longest input the model takes."""

    beam_size: int
    """Hypotheses kept per sentence."""
    length_penalty: float
    """Exponent of Wu et al. (2016), equation 14."""
    max_source_tokens: int
    """Most source tokens of a sentence, its end included."""
    max_output_tokens: int
    """Most target tokens of a sentence, its end included, however long the source."""
    max_output_ratio: float
    """Most target tokens per source token, before the margin."""
    max_output_margin: int
    """Target tokens granted beside those the ratio gives."""

    def output_limit(self, num_source_tokens: int) -> int:
        """Most target tokens for a source of so many tokens, the end counted in both."""
        by_source = math.ceil(self.max_output_ratio * num_source_tokens + self.max_output_margin)
        return min(self.max_output_tokens, by_source)

    def __post_init__(self) -> None:
        for name, least, most in (
            ("beam_size", 1, MAX_BEAM_SIZE),
            ("length_penalty", 0, MAX_LENGTH_PENALTY),
            ("max_source_tokens", 1, _MAX_TOKENS),
            ("max_output_tokens", 1, _MAX_TOKENS),
            ("max_output_ratio", 0, 1000),
            ("max_output_margin", 0, _MAX_TOKENS),
        ):
            check_number(f"decoding.{name}", getattr(self, name), least, most)
