"""How a caller wants texts translated, checked as far as a client can tell."""

from dataclasses import dataclass
from typing import Literal, get_args

from dragoman.arguments import check_count, check_number, invalid
from dragoman.texts import check_text

LengthPolicy = Literal["split", "reject", "truncate"]
Segmentation = Literal["sentence", "line"]
Priority = Literal["interactive", "bulk"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What holds for all texts of a call. None leaves a choice to the model's bundle or to the server."""

    source: str
    """Language of the texts, as a BCP 47 code such as "de"."""
    target: str
    """Language to translate to."""
    model: str | None = None
    """Name of a model, or "name/version"; None lets the server choose one for the languages."""
    beam_size: int | None = None
    """Hypotheses kept per sentence while searching; 1 is greedy."""
    num_hypotheses: int | None = None
    """Hypotheses returned per text, at most `beam_size`."""
    length_penalty: float | None = None
    """Exponent of the length penalty (Wu et al. 2016, eq. 14), from 0 to 10; 0 turns it off."""
    max_output_tokens: int | None = None
    """Most tokens a sentence's translation may have."""
    target_prefix: str | None = None
    """Text that the translation must begin with."""
    length_policy: LengthPolicy | None = None
    """What happens to a sentence that is too long for the model."""
    segmentation: Segmentation | None = None
    """How a text is cut into the units that the model translates."""
    priority: Priority | None = None
    """Who goes first where the server is full; None is interactive for a call and bulk for a stream."""
    alignments: bool = False
    """Whether each hypothesis comes with its word alignments."""

    def __post_init__(self) -> None:
        """Raises TypeError or InvalidRequestError for what cannot travel; the server judges the rest."""
        for name in ("source", "target", "model", "target_prefix"):
            value = getattr(self, name)
            if value is not None:
                check_text(value, name)
        for name in ("beam_size", "num_hypotheses", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None:
                check_count(value, name)
        if self.length_penalty is not None:
            check_number(self.length_penalty, "length_penalty")
        for name, choices in (
            ("length_policy", LengthPolicy),
            ("segmentation", Segmentation),
            ("priority", Priority),
        ):
            value = getattr(self, name)
            if value is not None and value not in get_args(choices):
                raise invalid(name, f"is {value!r}; it must be one of {', '.join(get_args(choices))}")
