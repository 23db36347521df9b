"""Where sentences end, by rules of our own with a file of words for each language.

Owns the rules and reads their data. Knows neither units nor lines' ends: it is given one line.
"""

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files

from dragoman_server.text.words import IS_UNSPACED

_MARK = re.compile(
    r"(?P<mark>[.!?…]++(?:(?:\s\.)++(?!\w))?+)(?P<closers>(?:[\"'”“’»›)\]]|\s»(?!\S))*+)(?P<gap>\s*+)"
    # Marks of other scripts that end nothing but sentences: Unicode's property Sentence_Terminal.
    r"|(?:[։؟۔।॥၊။።፧‼‽⁇-⁉。！？｡។៕]++|．(?!\d)|;(?=\s+[Ά-ΏΑ-Ϋ]))(?P<wide_closers>[”’」』）»\"]*+)\s*+"
)
# Beyond so many characters there is no word that a rule asks for, and no time is lost on looking for one.
_MAX_WORD = 40
_NEXT_WORD = re.compile(rf"[\W_]{{0,{_MAX_WORD}}}([^\W_]+(?:['’](?=\w))?)")
_OPENERS = "\"'„“”‚‘’«»‹›([{¿¡-–—*"
# Dutch "'s Zondags" and "'t Is" begin with a small letter.
_CLITIC = re.compile(r"['’][a-z]\s+[A-Z]")
_QUOTES = frozenset("\"'”“’»›")
_ROMAN = re.compile(r"[IVXLC]+")
_ROMAN_BEHIND_ABBREVIATION = re.compile(r"[VX]|[IVXLC]{2,}")
_HAS_INNER_DOTS = re.compile(r"(?:[^\W\d_]{1,3}\.-?)+[^\W\d_]{1,3}")
_LAST_PART = re.compile(r"[-/'’]")
_MAX_ORDINAL_DIGITS = 3
_MIN_LETTERS_OF_CAPITALS = 4
_MAX_LETTERS_OF_PART = 2
_MAX_WORDS_OF_TIME = 6


@dataclass(frozen=True, kw_only=True)
class SentenceRules:
    """The words of one language that tell whether a sentence ends behind a dot.

    An abbreviation is written without its last dot, and without spaces: "z.B".
    """

    abbreviations: frozenset[str] = frozenset()
    """Never end a sentence: "Dr.", "z.B."."""
    small_abbreviations: frozenset[str] = frozenset()
    """Abbreviations that are words of their own when they begin with a capital: "max." and "Max"."""
    before_numbers: frozenset[str] = frozenset()
    """Are abbreviations before a number alone: "Art. 3"."""
    may_end: frozenset[str] = frozenset()
    """End a sentence where a word of `starters` follows: "in the U.S. The"."""
    suffixes: frozenset[str] = frozenset()
    """Ends of words that are as those of `may_end`: "in der Goethestr."."""
    mostly_end: frozenset[str] = frozenset()
    """End a sentence unless a word of `followers` follows: "at 5 p.m. Monday"."""
    followers: frozenset[str] = frozenset()
    """Words with a capital that go on behind one of `mostly_end`."""
    openers: frozenset[str] = frozenset()
    """Words, in small letters, that begin a time, with which no sentence ends: "W 1984 r. Geyer wrócił"."""
    starters: frozenset[str] = frozenset()
    """Words, in small letters, that have a capital at the beginning of a sentence only; what is elided with
    its apostrophe: "j'"."""
    words_of_one_letter: frozenset[str] = frozenset()
    """Capitals that are words, and no initials of a name: "So do I."."""
    ordinals_behind: frozenset[str] = frozenset()
    """Words, in small letters, behind which a number with a dot is an ordinal: "am 3."; if there are none,
    behind any."""
    ordinals_before: frozenset[str] = frozenset()
    """Words before which it is one: "3. Mai". None for a language that writes ordinals otherwise."""
    speech: frozenset[str] = frozenset()
    """Verbs that say who spoke: “Where?” Tom asked. Where no spaces are written, what begins with them."""
    labels: frozenset[str] = frozenset()
    """Words, in small letters, that are no speaker's name before a colon: "ACHTUNG:"."""
    orders: frozenset[str] = frozenset()
    """Words, in small letters, that orders begin with, of a language that writes a dot behind these where
    others have "!": "Come here."."""
    called_orders: frozenset[str] = frozenset()
    """Words that they begin with in a language that writes "!" behind them: "Komm her!"."""
    small_in_titles: frozenset[str] = frozenset()
    """Words that have no capital in a heading where others have one; of a language that writes such."""
    _known: Mapping[str, str] = field(init=False, repr=False)
    _suffixes: tuple[str, ...] = field(init=False, repr=False)
    _said: tuple[str, ...] = field(init=False, repr=False)
    _max_known: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kinds = ("mostly_end", "may_end", "before_numbers", "abbreviations")
        known = {
            word: kind for kind in kinds for listed in getattr(self, kind) for word in _spellings(listed)
        }
        known |= dict.fromkeys(self.small_abbreviations, "abbreviations")
        object.__setattr__(self, "_suffixes", tuple(self.suffixes))
        object.__setattr__(self, "_said", tuple(self.speech))
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_max_known", max(map(len, known), default=0))

    def ends(self, line: str) -> Iterator[int]:
        """Where the sentences of a line end, white space behind them included; not the line's own end."""
        beginning = 0
        for found in _MARK.finditer(line):
            end = found.end()
            if end < len(line) and self._is_end(line, found, beginning):
                yield end
                beginning = end

    def _is_end(self, line: str, found: re.Match[str], beginning: int) -> bool:
        mark, end = found["mark"], found.end()
        if mark is None:
            # 「はい。」と言った
            return not (found["wide_closers"] and line.startswith(self._said, end))
        if not found["gap"] and not line[end].isalpha():
            return False
        start = found.start()
        gap = line.rfind(" ", max(beginning, start - _MAX_WORD), start)
        word = line[max(gap + 1, beginning) : start].lstrip(_OPENERS)
        if not found["gap"]:
            if IS_UNSPACED.match(line[end]):
                return not found["closers"] and (mark[-1] != "." or IS_UNSPACED.match(word[-1:]) is not None)
            return _touching(word, mark, line[end], start == beginning + len(word))
        following = _NEXT_WORD.match(line, end)
        if following is None:
            # No word is left that would be a sentence's; it stays as it stands.
            return True
        next_word = following[1]
        if next_word[0].islower():
            return (
                line[end] in "¿¡"
                or next_word[1:2].isupper()
                or _CLITIC.match(line, end) is not None
                or _begins_small(line, beginning)
            )
        if mark != ".":
            return not (found["closers"] and self._is_reported(line, found["closers"], following))
        if word.isdigit() and not found["closers"]:
            return self._ends_with_number(line, word, gap, beginning, following)
        if f"{word}.{next_word}" in self._known:
            # "v. Chr."
            return False
        kind = self._kind(line, word, gap, beginning)
        if kind == "mostly_end" and self.openers and not self._is_starter(next_word):
            words = line[beginning:start].split(maxsplit=_MAX_WORDS_OF_TIME)
            if len(words) <= _MAX_WORDS_OF_TIME and (words[0].isdigit() or words[0].lower() in self.openers):
                return False
        return self._ends_with(word, kind, next_word) or (line[end] in "¿¡" and kind != "abbreviations")

    def _kind(self, line: str, word: str, gap: int, beginning: int) -> str:
        """The kind of a word before a dot: the name of one of the fields, or "" for any other word."""
        if len(word) <= _MAX_LETTERS_OF_PART:
            # Parts of "z. B." stand apart.
            compound = word
            while gap > beginning and line[gap - 1] == "." and len(compound) <= self._max_known:
                before = line.rfind(" ", max(beginning, gap - _MAX_WORD), gap)
                part = line[max(before + 1, beginning) : gap].lstrip(_OPENERS)
                if len(part) > _MAX_LETTERS_OF_PART + 1 or not part[:-1].isalpha():
                    break
                compound, gap = part + compound, before
                if compound in self._known:
                    return self._known[compound]
            if compound != word:
                return "may_end"
        if word in self._known:
            return self._known[word]
        if _is_initial(word) and word not in self.words_of_one_letter:
            return "may_end"
        if not word.isalpha():
            if _HAS_INNER_DOTS.fullmatch(word):
                return "may_end"
            last = _LAST_PART.split(word)[-1]
            if last != word and len(last) > 1:
                return self._known.get(last, "")
        is_ordinal = self.ordinals_before and _ROMAN.fullmatch(word)
        return "may_end" if is_ordinal or word.endswith(self._suffixes) else ""

    def _ends_with(self, word: str, kind: str, next_word: str) -> bool:
        if kind == "abbreviations":
            return False
        if kind == "before_numbers":
            if any(map(str.isdigit, next_word)) or _ROMAN_BEHIND_ABBREVIATION.fullmatch(next_word):
                return False
            return not _is_initial(word) or self._is_starter(next_word)
        if kind == "may_end":
            return self._is_starter(next_word)
        return kind != "mostly_end" or next_word not in self.followers

    def _ends_with_number(
        self, line: str, number: str, gap: int, beginning: int, following: re.Match[str]
    ) -> bool:
        if not self.ordinals_before or len(number) > _MAX_ORDINAL_DIGITS:
            return True
        next_word = following[1]
        if next_word in self.ordinals_before:
            return False
        previous = line[beginning : max(gap, beginning)].rstrip(" ,(").rpartition(" ")[2].lstrip(_OPENERS)
        if next_word.isdigit():
            # "3. 5. 2023"
            return not (line.startswith(".", following.end()) or previous[:-1].isdigit())
        if self._is_starter(next_word):
            return True
        return bool(self.ordinals_behind) and previous.lower() not in self.ordinals_behind

    def _is_starter(self, word: str) -> bool:
        small = word.lower().replace("’", "'")
        return small in self.starters or (
            len(small) > _MAX_LETTERS_OF_PART and small.rstrip("'") in self.starters
        )

    def _is_reported(self, line: str, closers: str, following: re.Match[str]) -> bool:
        """Whether somebody is said to have spoken: a name and a verb behind a quotation."""
        if not self.speech or _QUOTES.isdisjoint(closers):
            return False
        behind = line[following.end() : following.end() + _MAX_WORD].split(maxsplit=2)[:2]
        return any(word.strip(".,:;!?") in self.speech for word in behind)


@functools.cache
def rules_for(language: str) -> SentenceRules:
    """The rules of a language, by its shortest code; those of all others where there is no file for it."""
    folder = files("dragoman_server.text.cut") / "data"
    path = folder / f"{language}.toml"
    if not (language.isalpha() and path.is_file()):
        path = folder / "other.toml"
    return read_rules(path.read_text(encoding="utf-8"))


def read_rules(text: str) -> SentenceRules:
    """Takes TOML: for each field of SentenceRules a string of words. Raises ValueError."""
    table = tomllib.loads(text)
    names = {field.name for field in fields(SentenceRules) if field.init}
    if unknown := table.keys() - names:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    return SentenceRules(**{name: frozenset(words.split()) for name, words in table.items()})


def _touching(word: str, mark: str, next_letter: str, is_first: bool) -> bool:
    """Whether a sentence ends where no space follows: "gehe.Du", or the number of a list's item, "1.Brot"."""
    if word.isdigit():
        return is_first and mark == "."
    is_plain = word.isalpha() and (word.islower() or mark[-1] in "!?") and len(word) > _MAX_LETTERS_OF_PART
    return is_plain and next_letter.isupper()


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isupper()


def _begins_small(line: str, beginning: int) -> bool:
    """Whether the writer does without capitals."""
    first = _NEXT_WORD.match(line, beginning)
    return first is not None and first[1][0].islower()


def _spellings(word: str) -> set[str]:
    """The spellings of a word: as it is given, with a capital, and all in capitals where that is hardly
    another word, as "VS" is one."""
    capitals = {word.upper()} if len(word) >= _MIN_LETTERS_OF_CAPITALS else set()
    return {word, word[0].upper() + word[1:], *capitals} if len(word) > 1 else {word}
