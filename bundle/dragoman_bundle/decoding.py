"""How a model is decoded unless a request says otherwise, and how likely a translation of it is good.

A confidence is a logistic function of what is known of a translation without a reference. Its coefficients
stand in a bundle's manifest, fitted to its model on pairs of sentences that it was not trained on.
"""

import math
import re
from dataclasses import dataclass

from dragoman_bundle.errors import MAX_BEAM_SIZE, MAX_LENGTH_PENALTY, check_number

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


SLOW_FUSIONS = {"cpu": ["SkipLayerNormFusion"], "cuda": []}
"""Optimisations that are switched off, by device: their kernels are slower than the nodes they stand for, on
a CPU five times for a sum and its layer norm."""


GOOD_CHRF = 50.0
"""A sentence whose chrF against a reference is this or more counts as good."""
_MAX_COEFFICIENT = 1e6
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The features of a sentence's translation."""

    log_probability: float
    """Natural log of the model's probability of a token, on average."""
    shortness: float
    """Natural log of its length to the usual one; 0 where it is no shorter than that."""
    repetition: float
    """Share of its words that came before in it, beyond those of its source that did."""


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """Coefficients of the features, and the pairs that they were fitted on."""

    intercept: float
    log_probability: float
    shortness: float
    repetition: float
    length_ratio: float
    """Characters of a translation to one of its source: the median of the references."""
    sentences: int
    """Sentences that it was fitted on."""

    def __post_init__(self) -> None:
        for name in ("intercept", "log_probability", "shortness", "repetition"):
            check_number(f"confidence.{name}", getattr(self, name), -_MAX_COEFFICIENT, _MAX_COEFFICIENT)
        check_number("confidence.length_ratio", self.length_ratio, 1e-3, 1e3)
        check_number("confidence.sentences", self.sentences, 1, 10**12)

    def probability(self, evidence: Evidence) -> float:
        """The probability that the translation is good, from 0 to 1."""
        logit = (
            self.intercept
            + self.log_probability * evidence.log_probability
            + self.shortness * evidence.shortness
            + self.repetition * evidence.repetition
        )
        # As exp(-logit) it would overflow for one that is far below 0.
        return 0.5 * (1 + math.tanh(logit / 2))


def evidence_of(
    source: str, translation: str, *, log_probability: float, num_tokens: int, length_ratio: float
) -> Evidence:
    """The features of a sentence's translation; its tokens have that log-probability together."""
    lengths = len(translation) + 1, length_ratio * len(source) + 1
    words = words_of(translation)
    repeated = num_repeated(words) - num_repeated(words_of(source))
    return Evidence(
        log_probability=log_probability / max(num_tokens, 1),
        shortness=min(0.0, math.log(lengths[0] / lengths[1])),
        repetition=max(0, repeated) / (len(words) + 1),
    )


def words_of(text: str) -> list[str]:
    """The words of a text without their case."""
    return _WORD.findall(text.casefold())


def num_repeated(words: list[str]) -> int:
    """The words that came before."""
    return len(words) - len(set(words))
