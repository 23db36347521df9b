"""How a caller wants texts translated, and what it gives, checked as far as a client can tell."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, Self, TypedDict, get_args

from dragoman.errors import FieldViolation, InvalidRequestError
from dragoman.translation import Key
from dragoman_files.format import UnitError
from dragoman_files.texts import RangedText


def check_count(value: object, name: str) -> None:
    """Raises TypeError for what is no integer, InvalidRequestError for one that the wire cannot carry."""
    if not isinstance(value, Integral):
        raise TypeError(f"{name} is {type(value).__name__}, not int")
    if not 1 <= int(value) < 2**32:
        raise invalid(name, f"is {value}; it must be {'at least 1' if int(value) < 1 else 'below 2**32'}")


def check_number(value: object, name: str) -> None:
    """Raises TypeError for what is no number, InvalidRequestError for nan."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} is {type(value).__name__}, not float")
    if math.isnan(value):
        raise invalid(name, "is nan, not a number")


def check_choice(value: object, choices: object, name: str) -> None:
    """Raises InvalidRequestError for what is no value of a Literal; None leaves the choice to others."""
    if value is not None and value not in get_args(choices):
        raise invalid(name, f"is {value!r}; it must be one of {', '.join(get_args(choices))}")


def invalid(field: str, description: str) -> InvalidRequestError:
    """The error of one argument."""
    violation = FieldViolation(field=field, description=description)
    return InvalidRequestError(f"{field} {description}", violations=(violation,))


MAX_DETECTION_CHARACTERS = 1_000
"""Maximum of characters by which a language is detected: the beginning of a text tells it."""
MAX_STREAM_TEXT_BYTES = (4 << 20) - 1024
"""Most bytes of a text of a stream: a longer one, in a message, is over the 4 MiB that gRPC servers take by
default, which would end the stream for all."""


def check_text(text: object, field: str) -> str:
    """The text, if it can travel.

    Raises TypeError for what is no string, InvalidRequestError for one with a lone surrogate.
    """
    if not isinstance(text, str):
        raise TypeError(f"{field} is {type(text).__name__}, not str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        description = f"has a lone surrogate at code point {error.start}, which UTF-8 cannot carry"
        raise invalid(field, description) from None
    return text


def check_pair(pair: tuple[Key, str]) -> tuple[Key, str]:
    """The pair. Raises TypeError for a bare text, of which a short one would pass for a pair."""
    if isinstance(pair, str | bytes):
        rule = "a stream takes pairs (id, text), not texts: write enumerate(texts)"
        raise TypeError(f"{rule}; got {pair[:20]!r}")
    return pair


def check_text_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Texts with their translations, each checked. Raises TypeError for what is no pair of texts."""
    checked = []
    for position, pair in enumerate(pairs):
        if isinstance(pair, str | bytes) or len(pair) != 2:
            raise TypeError(f"pairs[{position}] is no pair (text, translation): {pair!r:.40}")
        fields = f"pairs[{position}].source", f"pairs[{position}].target"
        checked.append((check_text(pair[0], fields[0]), check_text(pair[1], fields[1])))
    return checked


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list, each checked. Raises TypeError for one string in place of many."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a list of strings, not one string: write [{texts[:20]!r}]")
    return [check_text(text, f"texts[{position}]") for position, text in enumerate(texts)]


class ProtectedText(RangedText):
    """A text, for any call that takes texts, with ranges of it that are not translated.

    ProtectedText("Herr Grün mag grün.", [(5, 9)])
    """

    __slots__ = ()

    def __new__(cls, text: str, protected_ranges: Iterable[tuple[int, int]]) -> Self:
        """Raises TypeError for what is no range, InvalidRequestError for one that is not in the text."""
        try:
            return super().__new__(cls, text, protected_ranges)
        except UnitError as error:
            raise invalid("protected_ranges", str(error).removeprefix("protected_ranges ")) from None


LengthPolicy = Literal["split", "reject", "truncate"]
Formality = Literal["formal", "informal"]
Segmentation = Literal["sentence", "line"]
Priority = Literal["interactive", "bulk"]
TextFormat = Literal["plain", "html"]


class Options(TypedDict, total=False):
    """The options of a request, as keyword arguments of the clients' calls: fields of `Settings`.

    What is left out or None is left to the model's bundle or to the server.
    """

    model: str | None
    beam_size: int | None
    num_hypotheses: int | None
    length_penalty: float | None
    max_output_tokens: int | None
    target_prefix: str | None
    length_policy: LengthPolicy | None
    formality: Formality | None
    segmentation: Segmentation | None
    priority: Priority | None
    text_format: TextFormat | None
    protect: bool | None
    do_not_translate: Sequence[str] | None
    patterns: Sequence[str] | None
    terms: Mapping[str, str] | None
    glossaries: Sequence[str] | None
    inflected_terms: bool | None
    terms_as_written: bool | None
    forbidden: Sequence[str] | None
    alignments: bool
    pivot: str | None


class TranslateOptions(Options, total=False):
    """The options of `translate`, which explains the last."""

    timeout_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of all texts of a call. None leaves a choice to the model's bundle or to the server."""

    source: str
    """Language of the texts, as a BCP 47 code such as "de"; for `translate` also "auto": each text's own."""
    target: str
    """Language to translate to."""
    model: str | None = None
    """Name of a model, or "name/version"; two with a space between translate one after the other. None lets
    the server choose for the languages."""
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
    """The policy for a sentence that is too long for the model."""
    formality: Formality | None = None
    """The way to address a reader; a model that was not trained for it refuses it."""
    segmentation: Segmentation | None = None
    """How a text is cut into the units that the model translates."""
    priority: Priority | None = None
    """The priority where the server is full; None is interactive for a call and bulk for a stream."""
    text_format: TextFormat | None = None
    """The format of the texts; None is plain."""
    protect: bool | None = None
    """Whether the server protects what is certain, such as URLs and placeholders; None is yes."""
    do_not_translate: Sequence[str] | None = None
    """Words that stay as they are."""
    patterns: Sequence[str] | None = None
    """Regular expressions, in the syntax of RE2, whose matches stay as they are."""
    terms: Mapping[str, str] | None = None
    """Words, and what they are translated by."""
    glossaries: Sequence[str] | None = None
    """Names of the server's glossaries that count, behind `terms`."""
    inflected_terms: bool | None = None
    """Whether terms, glossaries' too, and forbidden words are found in all their inflected forms."""
    terms_as_written: bool | None = None
    """Whether translations of terms keep the case of their letters wherever they stand."""
    forbidden: Sequence[str] | None = None
    """Words of the target language that a translation is warned of for."""
    alignments: bool = False
    """Whether each hypothesis comes with its word alignments."""
    pivot: str | None = None
    """A language that texts may go through where no model is for their languages; "" is none."""

    def __post_init__(self) -> None:
        """Raises TypeError or InvalidRequestError for what cannot travel; the server judges the rest."""
        for name in ("source", "target", "model", "target_prefix", "pivot"):
            value = getattr(self, name)
            if value is not None:
                check_text(value, name)
        for name in ("do_not_translate", "patterns", "glossaries", "forbidden"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, str | bytes) or not isinstance(value, Iterable):
                raise TypeError(f"{name} must be a list of strings; got {value!r:.40}")
            # A list, as it is once it has been JSON.
            words = [check_text(word, f"{name}[{position}]") for position, word in enumerate(value)]
            object.__setattr__(self, name, words)
        if self.terms is not None:
            if not isinstance(self.terms, Mapping):
                raise TypeError(f"terms is {type(self.terms).__name__}, not a mapping of words to words")
            pairs = self.terms.items()
            terms = {check_text(word, "terms"): check_text(target, "terms") for word, target in pairs}
            object.__setattr__(self, "terms", terms)
        for name in ("beam_size", "num_hypotheses", "max_output_tokens"):
            value = getattr(self, name)
            if value is not None:
                check_count(value, name)
        if self.length_penalty is not None:
            check_number(self.length_penalty, "length_penalty")
        check_choice(self.length_policy, LengthPolicy, "length_policy")
        check_choice(self.formality, Formality, "formality")
        check_choice(self.segmentation, Segmentation, "segmentation")
        check_choice(self.priority, Priority, "priority")
        check_choice(self.text_format, TextFormat, "text_format")
