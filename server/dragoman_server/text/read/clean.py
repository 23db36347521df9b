"""Texts cleaned: what shows nothing is left out, and letters are composed with their marks.

Pure. Must not know languages, units, tokens or models.
"""

import re
import unicodedata
from collections.abc import Iterator

from dragoman_bundle.tokenizers.tokenizer import FIRST_TAG, LAST_TAG

from dragoman_server.text.mapped import Edit, Mapped

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
# A vocabulary may have pieces for the tags, which a caller's text must not hold for the model.
_LOOKALIKE = re.compile(f"[{_HYPHENS}{FIRST_TAG}-{LAST_TAG}]")

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


def clean(text: str) -> Mapped:
    """Leaves out what shows nothing, and composes letters with their marks.

    Emoji sequences stay whole, and so do joiners in scripts that are written with them. A letter that is
    one character already stays the character it is.
    """
    cleaned = Mapped.of(text)
    if text.isascii() and text.isprintable():
        return cleaned
    cleaned = cleaned.edited(_left_out(text))
    if not unicodedata.is_normalized("NFC", cleaned.text):
        cleaned = cleaned.edited(_compositions(cleaned.text))
    return cleaned


def for_tokenizer(text: str) -> str:
    """A text, as long, with a plain hyphen for each character that looks like one and no model's tags."""
    return text.translate(_FOR_TOKENIZER) if _LOOKALIKE.search(text) else text


def _left_out(text: str) -> Iterator[Edit]:
    for run in _IGNORABLES.finditer(text):
        start, end = run.span()
        before, behind = text[start - 1 : start], text[end : end + 1]
        for position in range(start, end):
            if not _matters(text[position], before, behind):
                yield (position, position + 1), ""


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


def _compositions(text: str) -> Iterator[Edit]:
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and end - start <= _MAX_MARKS and _is_mark(text[end]):
            end += 1
        if end > start + 1:
            composed = unicodedata.normalize("NFC", text[start:end])
            if composed != text[start:end]:
                yield (start, end), composed
        start = end


def _is_mark(character: str) -> bool:
    """Whether it can become one character with the one before it."""
    return not character.isascii() and bool(
        unicodedata.category(character).startswith("M") or _HANGUL_VOWELS_AND_FINALS.match(character)
    )
