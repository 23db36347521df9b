"""What a pair of documentation or of an interface looks like to the model, and which pairs are of no use.

The service gives a model text without tags, with words in place of placeholders and code. So are these pairs.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from dragoman_training.corpora.tables import Pair, draw, pick, stop_words, words

MAX_WORDS = 80
MAX_LENGTH_RATIO = 2.5
"""The limit of the ratio of the sides' characters, once the longer has more than `SHORT_CHARACTERS`."""
SHORT_CHARACTERS = 24
SHARE_WITH_TAGS = 0.1
"""The share of the pairs with the same tags on both sides that keep them."""
MAX_PLACEHOLDERS = 3

EMPTY = "with an empty side"
COPIES = "with the same text on both sides"
CODE = "with code or markup that does not match"
PLACEHOLDERS = "with many placeholders, or such that do not match"
LENGTH = f"of more than {MAX_WORDS} words"
RATIO = "of too unequal lengths"
PIECE = "with a piece of a sentence"
NUMBERS = "with numbers that do not match"
LANGUAGE = "with a side in the wrong language"

_ENDLESS = re.compile(r"&#\d{100}")
"""A reference of HTML that stands for no character, with more digits than Python may read."""
_COUNT = r"%(?:\d+\$)?d|%\(\w*(?:count|num|total)\w*\)[ds]|\{(?:count|num|n)\}"
_PLACEHOLDER = re.compile(rf"`[^`]+`|\{{\{{[^{{}}]+\}}\}}|{_COUNT}|%(?:\d+\$)?[s@]|%\(\w+\)[sd]|\{{[\w.]*\}}")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*(?:\([^()]*\)[^()]*)*\)")
_TAG = re.compile(r"</?[A-Za-z_][^<>]*>")
_ELEMENT = re.compile(r"<([A-Za-z]\w*)(?: [^<>]*)?>([^<>]*)</\1>|<br ?/?>")
_SIMPLE_TAG = re.compile(r"</?(?:b|i|em|strong|u|gui|app|key|span)>|\*\*")
_EMPHASIS = re.compile(r"\*\*\*?([^*]+)\*\*\*?|(?<!\w)\*([^*]+)\*(?!\w)|(?<!\w)__([^_]+)__(?!\w)")
_ESCAPE = re.compile(r"\\([_*<>\[\]#.()\-!|~$&'\"])")
_LABEL = re.compile(
    r"^(?:[A-Z]{2,}\d+:|description:|title:|\[!\w+\]|>|#+|[-*+•]|\d+[.)](?= \D))\s*(?=\S)", re.IGNORECASE
)
_PLAIN = (
    (_LABEL, ""),
    (_LINK, r"\1"),
    # An element may stand within another.
    (_ELEMENT, r"\2"),
    (_ELEMENT, r"\2"),
    (_EMPHASIS, r"\1\2\3"),
    (_ESCAPE, r"\1"),
)
_LEFT_OVER = re.compile(
    r'[\\<>{}`|=~^\[\]]|""|[&_]\w|\w_|%\w|\w\(|https?:|www\.|\.\.\.[a-z]|\*|::|#\w|\$\w|\w/\w+/|!\[|;\S|\w\.\w+\.\w|[\ue000-\uf8ff�]'
)
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_DIGIT_MARKS = re.compile(r"(?<=\d)[.,'’\u202f\u00a0 ](?=\d)")
_END = re.compile(r"[.!?…:;][\"'”“»)]*$")
_SENTENCE_END = re.compile(r"(?<=[a-zäöüßéèáíóúñ)\"”“][.!?]) +(?=[A-ZÄÖÜÉÁ¿¡\"„“])")
_SPACES = re.compile(r"\s+")


def key_of(text: str) -> str:
    """The text without case, punctuation and spaces: what texts are compared by."""
    return re.sub(r"[\W_]+", "", text.casefold())


def num_words(text: str) -> int:
    """Words, as spaces part them."""
    return text.count(" ") + 1


def clean(pair: Pair, language: str) -> Pair | str:
    """The pair as the model is to read it, or why it is of no use."""
    if any(map(_ENDLESS.search, pair)):
        return CODE
    english, other = (_SPACES.sub(" ", html.unescape(side)).strip() for side in pair)
    with_tags = _with_tags(english, other)
    filled = with_tags or fill(plain(english), plain(other))
    if filled is None:
        return PLACEHOLDERS
    english, other = filled
    if not (any(map(str.isalpha, english)) and any(map(str.isalpha, other))):
        return EMPTY
    for side in filled:
        if _LEFT_OVER.search(_SIMPLE_TAG.sub("", side) if with_tags else side):
            return CODE
    return reason_to_leave_out(english, other, language) or filled


def reason_to_leave_out(english: str, other: str, language: str) -> str | None:
    """Why a pair of plain texts is of no use, or None."""
    longest = max(num_words(english), num_words(other))
    if longest > MAX_WORDS:
        return LENGTH
    shorter, longer = sorted((len(english), len(other)))
    if longer > SHORT_CHARACTERS and longer > MAX_LENGTH_RATIO * shorter:
        return RATIO
    if english.casefold() == other.casefold():
        return COPIES
    if bool(_END.search(english)) != bool(_END.search(other)) or _begins_unlike(english, other):
        return PIECE
    if _numbers(english) != _numbers(other):
        return NUMBERS
    if longest > 3 and _is_in_wrong_language(english, other, language):
        return LANGUAGE
    return None


def _begins_unlike(english: str, other: str) -> bool:
    """Whether a side that should begin a sentence begins within one."""
    lower = english[0].islower(), other[0].islower()
    if lower[1] and not lower[0]:
        return True
    # A German noun has its capital anywhere; what is long or ends like a sentence is none.
    return lower[0] and (num_words(english) > 4 or bool(_END.search(english)))


def _numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+", _DIGIT_MARKS.sub("", text)))


def _is_in_wrong_language(english: str, other: str, language: str) -> bool:
    found = [_WORD.findall(side.lower()) for side in (english, other)]
    own, foreign = stop_words("en"), stop_words(language)
    for side, right, wrong in ((found[0], own, foreign), (found[1], foreign, own)):
        if sum(word in wrong for word in side) > sum(word in right for word in side):
            return True
    sets = set(found[0]), set(found[1])
    fewer = min(map(len, sets))
    return fewer > 3 and len(sets[0] & sets[1]) > 0.6 * fewer


def plain(text: str) -> str:
    """The text without tags, emphasis, links' targets, and the mark of a list, a heading or a message.

    A tag that nothing closes stays: often it stands for a word.
    """
    for pattern, kept in _PLAIN:
        text = pattern.sub(kept, text)
    return _SPACES.sub(" ", text).strip()


def _with_tags(english: str, other: str) -> Pair | None:
    """The pair with its tags, for some of those with the same simple ones on both sides."""
    found = _SIMPLE_TAG.findall(english)
    if not 2 <= len(found) <= 6 or sorted(found) != sorted(_SIMPLE_TAG.findall(other)):
        return None
    if draw(english, "tags") >= SHARE_WITH_TAGS:
        return None
    bare = [_SIMPLE_TAG.sub("", side) for side in (english, other)]
    return None if any(_PLACEHOLDER.search(side) or _TAG.search(side) for side in bare) else (english, other)


def fill(english: str, other: str) -> Pair | None:
    """The pair with names and numbers for its placeholders; None where the sides have not the same ones."""
    found = _PLACEHOLDER.findall(english)
    is_clear = len(set(found)) == len(found) <= MAX_PLACEHOLDERS
    if not is_clear or sorted(found) != sorted(_PLACEHOLDER.findall(other)):
        return None
    filled: dict[str, str] = {}
    for placeholder in found:
        is_count = re.fullmatch(_COUNT, placeholder)
        names = [n for n in words()["names"].split() if n not in english and n not in filled.values()]
        number = str(11 + int(draw(english, placeholder) * 88))
        filled[placeholder] = number if is_count else pick(names, english, placeholder)
    filled_sides = [_PLACEHOLDER.sub(lambda match: filled[match[0]], side) for side in (english, other)]
    return filled_sides[0], filled_sides[1]


def sentences(pair: Pair) -> Iterator[Pair]:
    """The pairs of sentences of a pair of paragraphs; none where the sides have not as many."""
    sides = [_SENTENCE_END.split(side) for side in pair]
    if len(sides[0]) == len(sides[1]):
        yield from zip(*sides, strict=True)


def detokenized(text: str) -> str:
    """The text without the spaces that a tokenizer put around punctuation."""
    text = re.sub(r" ([.,;:!?%)\]}]|'s\b|n't\b|'re\b|'ll\b|'ve\b|'d\b|'m\b)", r"\1", text)
    text = re.sub(r"([(\[{]) ", r"\1", text)
    return re.sub(r'(^|\s)" ([^"]*?) "', r'\1"\2"', text)


def is_torn(german: str, english: str) -> bool:
    """Whether a machine tore a German compound apart: "Dialog Felds"."""
    names = set(english.split())
    nouns = (pair for pair in pairwise(german.split()[1:]) if all(word[:1].isupper() for word in pair))
    return any(names.isdisjoint((first, second.strip(".,;:"))) for first, second in nouns)


def without_repeats(pairs: Iterator[Pair], most: int, left_out: Counter[str]) -> Iterator[Pair]:
    """The pairs but equal ones, and those with a side that came `most` times already."""
    seen: set[Pair] = set()
    times: Counter[tuple[int, str]] = Counter()
    for pair in pairs:
        keys = key_of(pair[0]), key_of(pair[1])
        if keys in seen:
            left_out["there already"] += 1
        elif any(times[side] >= most for side in enumerate(keys)):
            left_out[f"with a side that came {most} times"] += 1
        else:
            seen.add(keys)
            times.update(enumerate(keys))
            yield pair
