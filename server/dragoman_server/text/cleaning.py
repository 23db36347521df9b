"""A text as it is cut and tokenized, with the way back to the caller's: what shows nothing is left out.

Pure. Must not know languages, units, tokens or models.
Spans are half-open and count code points.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_bundle.tags import FIRST_TAG, LAST_TAG

Span = tuple[int, int]

# Unicode's property Default_Ignorable_Code_Point, and the control characters that are no white space. The
# same word with and without them would be other tokens, mostly such as no model has learnt.
_IGNORABLE = (
    r"\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
# Vocabularies hardly ever have these, and nearly always the plain hyphen. Each takes the place of one.
_HYPHENS = "‐‑‒−˗﹣"
_TAGS_OF_MODELS = "".join(map(chr, range(ord(FIRST_TAG), ord(LAST_TAG) + 1)))
_UNKNOWN = "\uf8fe"
_FOR_TOKENIZER = str.maketrans(
    _HYPHENS + _TAGS_OF_MODELS, "-" * len(_HYPHENS) + _UNKNOWN * len(_TAGS_OF_MODELS)
)

_IGNORABLES = re.compile(f"[{_IGNORABLE}]+")
# A vocabulary may have pieces for these, which a caller's text must not hold for the model.
_UNCLEAN = re.compile(f"[{_IGNORABLE}{_HYPHENS}{FIRST_TAG}-{LAST_TAG}]")

_NON_JOINER, _JOINER = "\u200c", "\u200d"
# Scripts whose letters the joiners tell to join or not: those from Arabic to Burmese, and their relatives.
_JOINING = re.compile(
    r"[\u0600-\u109f\u1700-\u18af\u1900-\u1cff\ua800-\ua95f\ua980-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    r"\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_VIRAMA = 9  # A canonical combining class.
_EMOJI = re.compile(
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    r"\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_PRESENTATION = "\ufe0e\ufe0f"
_KEYCAP, _KEYS = "\u20e3", "0123456789#*"
_BLACK_FLAG = "\U0001f3f4"
_TAGS = re.compile(r"[\U000e0020-\U000e007f]")

_HANGUL_VOWELS_AND_FINALS = re.compile(r"[\u1161-\u1175\u11a8-\u11c2]")
# As in Unicode's Stream-Safe Text Format (UAX 15): to order a run of marks takes the square of its length.
_MAX_MARKS = 30


@dataclass(frozen=True, kw_only=True)
class CleanedText:
    """A text, and what of it is cut and tokenized."""

    caller_text: str
    """The text as the caller wrote it."""
    text: str
    """Without characters that show nothing, and with letters and their marks composed."""
    tokenizer_text: str
    """`text` with a plain hyphen for each character that looks like one, and none that is a model's tag; as
    long as `text`."""
    starts: Sequence[int]
    """For each character of `text`, where its origin begins in the caller's text."""
    ends: Sequence[int]
    """And where that ends."""

    def of_caller(self, span: Span) -> Span:
        """Where in the caller's text a span of `text` stands, which must not be empty."""
        start, end = span
        return self.starts[start], self.ends[end - 1]

    def between(self, spans: Sequence[Span]) -> tuple[str, ...]:
        """The caller's text before, between and behind spans of `text`.

        Where that is white space at most, what shows nothing is left out of it, too: marks of direction and
        the like come in pairs, and the other one may be in a sentence.
        """
        gaps = []
        end = 0
        for start, next_end in spans:
            gaps.append(self._gap(end, start))
            end = next_end
        gaps.append(self._gap(end, len(self.text)))
        return tuple(gaps)

    def _gap(self, start: int, end: int) -> str:
        gap = self.text[start:end]
        if not gap or gap.isspace() or self.text is self.caller_text:
            return gap
        before = self.ends[start - 1] if start else 0
        behind = self.starts[end] if end < len(self.text) else len(self.caller_text)
        return self.caller_text[before:behind]


def clean(text: str) -> CleanedText:
    """Leaves out what shows nothing, and composes letters with their marks.

    Emoji sequences stay whole, and so do joiners in scripts that are written with them. A letter that is
    one character already stays the character it is.
    """
    if (text.isascii() and text.isprintable()) or (
        not _UNCLEAN.search(text) and unicodedata.is_normalized("NFC", text)
    ):
        length = len(text)
        return CleanedText(
            caller_text=text,
            text=text,
            tokenizer_text=text,
            starts=range(length),
            ends=range(1, length + 1),
        )
    places_shown = _places_shown(text)
    visible = "".join([text[position] for position in places_shown])
    starts: Sequence[int] = places_shown
    ends: Sequence[int] = [position + 1 for position in places_shown]
    if not unicodedata.is_normalized("NFC", visible):
        visible, starts, ends = _compose(visible, starts, ends)
    return CleanedText(
        caller_text=text,
        text=visible,
        tokenizer_text=visible.translate(_FOR_TOKENIZER),
        starts=starts,
        ends=ends,
    )


def _places_shown(text: str) -> list[int]:
    """Where the characters stand that are not left out."""
    positions: list[int] = []
    end = 0
    for run in _IGNORABLES.finditer(text):
        positions += range(end, run.start())
        end = run.end()
        before, behind = text[run.start() - 1 : run.start()], text[end : end + 1]
        positions += [position for position in range(*run.span()) if _matters(text[position], before, behind)]
    positions += range(end, len(text))
    return positions


def _matters(character: str, before: str, behind: str) -> bool:
    """Whether an ignorable character is part of how something is written, by the ones shown around it."""
    if character in (_NON_JOINER, _JOINER):
        is_of_emoji = character == _JOINER and _EMOJI.match(before) and _EMOJI.match(behind)
        # Behind a virama it may end a word.
        is_of_letters = _joins(before) and (_joins(behind) or unicodedata.combining(before) == _VIRAMA)
        return bool(is_of_emoji or is_of_letters)
    if character in _PRESENTATION:
        return bool(_EMOJI.match(before)) or (before != "" and before in _KEYS and behind == _KEYCAP)
    return before == _BLACK_FLAG and bool(_TAGS.match(character))


def _joins(character: str) -> bool:
    return bool(_JOINING.match(character)) and unicodedata.category(character)[0] in "LM"


def _compose(text: str, starts: Sequence[int], ends: Sequence[int]) -> tuple[str, list[int], list[int]]:
    parts: list[str] = []
    new_starts: list[int] = []
    new_ends: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and end - start <= _MAX_MARKS and _is_mark(text[end]):
            end += 1
        part = text[start:end]
        composed = unicodedata.normalize("NFC", part) if len(part) > 1 else part
        parts.append(composed)
        if composed == part:
            new_starts += starts[start:end]
            new_ends += ends[start:end]
        else:
            new_starts += [starts[start]] * len(composed)
            new_ends += [ends[end - 1]] * len(composed)
        start = end
    return "".join(parts), new_starts, new_ends


def _is_mark(character: str) -> bool:
    """Whether it can become one character with the one before it."""
    return not character.isascii() and bool(
        unicodedata.category(character).startswith("M") or _HANGUL_VOWELS_AND_FINALS.match(character)
    )
