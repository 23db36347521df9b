"""The words of a text, where one ends, and in which letters it is written.

Pure. A word is a run of characters between white space without the punctuation at its ends, which is a word
of its own: "Haus." is "Haus" and ".". Chinese, Japanese, Thai, Lao, Khmer and Burmese write no spaces: there
a model's own pieces are the words, or else each character is, with the marks on it.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence

from dragoman_bundle.languages import UNSPACED_CHARACTERS

from dragoman_server.text.mapped import Span

PLAIN_MARKS = ".!?,;:()"
OWN_MARKS = {
    **dict.fromkeys(("zh", "yue"), "。！？，；：（）"),
    "ja": "。！？、；：（）",
    **dict.fromkeys(("ar", "fa", "ckb", "ps"), ".!؟"),
    **dict.fromkeys(("hi", "bn", "pa", "ne", "or", "as"), "।!?"),
    "ur": "۔!؟",
    "el": ".!;",
    "km": "។!?",
    "my": "။!?",
    "hy": "։!?",
}
"""The marks of languages that have others than the plain ones, in their order; of some ends alone."""
TO_PLAIN = {
    own: plain
    for language, marks in OWN_MARKS.items()
    for own, plain in zip(marks, PLAIN_MARKS, strict=False)
    if language != "el"
}
"""The plain mark for each; a Greek one is another in other languages."""
_RUN = re.compile(r"\S+")
IS_UNSPACED = re.compile(f"[{UNSPACED_CHARACTERS}]")
"""Finds a character of a script that writes no spaces."""
_UNBROKEN = re.compile(r"o|[wumv](?:[mv]|(?<=[wm])w)*+")
_STRETCH = re.compile(f"([{UNSPACED_CHARACTERS}]+)|[^{UNSPACED_CHARACTERS}]+")


def words(text: str, pieces: Sequence[Span] = ()) -> Iterator[Span]:
    """Ranges of the words of a text, in order. `pieces`: of the tokens that a model has of it."""
    edges = {edge for piece in pieces for edge in piece}
    for run in _RUN.finditer(text):
        if not IS_UNSPACED.search(text, *run.span()):
            yield from _without_punctuation(text, *run.span())
            continue
        for stretch in _STRETCH.finditer(text, *run.span()):
            start, end = stretch.span()
            if stretch[1] is None:
                yield from _without_punctuation(text, start, end)
                continue
            cuts = [
                position
                for position in range(start + 1, end)
                if (position in edges if edges else not _is_mark(text[position]))
            ]
            yield from zip([start, *cuts], [*cuts, end], strict=True)


def goes_on(text: str, position: int) -> bool:
    """Whether a word of the text goes on across a position, where no term can begin or end then."""
    if not 0 < position < len(text):
        return False
    before, behind = text[position - 1], text[position]
    if not all(character == "_" or is_of_word(character) for character in (before, behind)):
        return False
    return _is_mark(behind) or not (IS_UNSPACED.match(before) or IS_UNSPACED.match(behind))


def unbroken(text: str) -> Iterator[Span]:
    """The ranges that a text consists of: as small as they can be with no word that goes on across an end."""
    return (found.span() for found in _UNBROKEN.finditer(text.translate(_Traits())))


class _Traits(dict[int, str]):
    """The traits of characters by code point, for what `goes_on` asks: "w" for one of a word, "u" where its
    script writes no spaces, "m" and "v" for such marks, "o" for any other."""

    def __missing__(self, code_point: int) -> str:
        character = chr(code_point)
        is_unspaced = IS_UNSPACED.match(character) is not None
        if _is_mark(character):
            trait = "v" if is_unspaced else "m"
        elif character == "_" or is_of_word(character):
            trait = "u" if is_unspaced else "w"
        else:
            trait = "o"
        self[code_point] = trait
        return trait


def holds_letter(text: str) -> bool:
    """Whether there is a letter of any script in it: a character of one of Unicode's categories L."""
    return any(map(str.isalpha, text))


def is_of_word(character: str) -> bool:
    """Whether it is a letter, a number or a mark on one."""
    return unicodedata.category(character)[0] in "LNM"


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def find_word(word: str, text: str) -> Span | None:
    """Where it stands in a text as words of their own, in letters of any size; None where it does not."""
    for found in re.finditer(re.escape(word), text, re.IGNORECASE):
        if not (goes_on(text, found.start()) or goes_on(text, found.end())):
            return found.span()
    return None


def in_small_letters(text: str) -> str:
    """The text in small letters, each as one code point, so that positions stay."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(lower if len(lower := letter.lower()) == 1 else letter for letter in text)


def capitalised(text: str, place: int = 0) -> str:
    """The text with a capital at a place of it, which stays one code point."""
    large = text[place : place + 1].upper()
    return text[:place] + large + text[place + 1 :] if len(large) == 1 else text


def _without_punctuation(text: str, start: int, end: int) -> Iterator[Span]:
    first = next((position for position in range(start, end) if is_of_word(text[position])), end)
    last = next((position for position in range(end, first, -1) if is_of_word(text[position - 1])), end)
    yield from (span for span in ((start, first), (first, last), (last, end)) if span[0] < span[1])


MIN_CAPITALS = 5
"""Fewest letters of a single word that counts as written in capitals: shorter ones are abbreviations, as
"NATO"."""

_LETTERS = re.compile(r"[^\W\d_]+")


def is_in_capitals(text: str) -> bool:
    """Whether all its letters are capitals, and there are enough to be more than an abbreviation."""
    if not text.isupper():
        return False
    found = _LETTERS.findall(text)
    return (len(found) > 1 and sum(map(len, found)) >= MIN_CAPITALS) or any(
        len(word) >= MIN_CAPITALS for word in found
    )


_WITH_SIGNS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
MIN_TITLE = 3
"""Fewest words with a capital of a heading in title case: two are a name."""


def is_in_title_case(text: str, small: Collection[str]) -> bool:
    """Whether each word has a capital, but for the `small` ones: "How to Install the Printer Driver"."""
    large = [word for word in _WITH_SIGNS.findall(text) if word.lower() not in small]
    return len(large) >= MIN_TITLE and all(word != word.lower() for word in large)


def in_sentence_case(text: str, count_pieces: Callable[[Sequence[str]], Sequence[int]]) -> str:
    """A text in title case as `by_vocabulary` has it, but for "USB" and "McDonald". As long as the text."""
    small = by_vocabulary(text, count_pieces)
    return _LETTERS.sub(lambda word: small[slice(*word.span())] if word[0].istitle() else word[0], text)


def readings(text: str) -> list[str]:
    """The text in small letters, each way as long as it: with the first letter large, and with every
    word's."""
    small = in_small_letters(text)
    sentence = _begun(small)
    title = _LETTERS.sub(lambda word: capitalised(word[0]), small)
    return [sentence] if title == sentence else [sentence, title]


def by_vocabulary(text: str, count_pieces: Callable[[Sequence[str]], Sequence[int]]) -> str:
    """The text in small letters, but for first letters of words that a vocabulary has with a large one.

    Those are the words that are fewer pieces with it, as German nouns are. As long as the text.
    """
    small = in_small_letters(text)
    words = list(dict.fromkeys(_LETTERS.findall(small)))
    num_pieces = count_pieces([*words, *map(capitalised, words)])
    is_large = {word: num_pieces[len(words) + rank] < num_pieces[rank] for rank, word in enumerate(words)}
    return _begun(_LETTERS.sub(lambda word: capitalised(word[0]) if is_large[word[0]] else word[0], small))


def _begun(text: str) -> str:
    """The text with its first letter large."""
    return capitalised(text, next((index for index, letter in enumerate(text) if letter.isalpha()), 0))
