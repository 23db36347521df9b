"""How an answer begins and ends: with a capital, and with the mark at the end, as its source does. Pure."""

import re
from collections.abc import Callable, Collection, Sequence

from dragoman_bundle.languages import primary_language

from dragoman_server.text.cut.rules import rules_for
from dragoman_server.text.words import OWN_MARKS, TO_PLAIN, capitalised, in_small_letters

_WHOLE_ENDS = ".!?"
_WITHOUT_END = frozenset(("th", "lo"))
"""Languages whose sentences have no mark at their end but to ask and to call."""
_SIGNS = ".!?…,;:–—" + "。！？，、：；．؟।۔។။։"
_PLAIN = str.maketrans({**TO_PLAIN, "．": "."})
_CALLS = str.maketrans("", "", "?!")
_CLOSING = "\"'”’“‘»«›‹)]}）」』】"
_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_CAPITAL_NOUNS = frozenset(("de", "lb"))
"""Languages that write nouns with a capital."""

CountPieces = Callable[[Sequence[str]], Sequence[int]]
"""Says of how many pieces of the vocabulary words are made."""


def finished(
    answer: str, shown: str, *, languages: tuple[str, str], count_pieces: CountPieces, is_cased: bool = True
) -> str:
    """An answer to what was shown with its first letter as large and with its mark at the end.

    What had no mark gets none; a copy has its own within, too. `is_cased`: whether the answer begins with a
    word of the model's own.
    """
    if not any(map(str.isalnum, answer)):
        return answer
    if answer.translate(_CALLS) == shown.translate(_CALLS):
        return shown
    source, target = languages
    answer = _ended(answer, shown, source, target)
    return _begun(answer, shown, source, target, count_pieces) if is_cased else answer


def _ended(answer: str, shown: str, source: str, target: str) -> str:
    _, wanted, outer = _parts(shown)
    stem, signs, closing = _parts(answer)
    want, have = (_plain(text.strip(), language) for text, language in ((wanted, source), (signs, target)))
    if want == have or (not want and have == "." and "." in stem.rpartition(" ")[2]):
        # Of "at 5 p.m." the dot is the word's.
        inner = stem.rstrip(_CLOSING)
        if want and not closing and inner != stem and _sorts(stem[len(inner) :]) == _sorts(outer):
            return f"{inner}{signs}{stem[len(inner) :]}"
        return answer
    orders = rules_for(primary_language(source)).called_orders, rules_for(primary_language(target)).orders
    if want == "!" and have == "." and all(map(_begins, (shown, stem), orders)):
        # An order in a language that writes a dot behind those.
        return answer
    written = _of_language(want, target)
    if want and not have and not outer.strip():
        return f"{stem}{closing}{written}"
    return f"{stem}{written}{closing}"


def _begins(text: str, words: Collection[str]) -> bool:
    first = _WORD.search(text)
    return first is not None and first[0].lower().replace("’", "'") in words


def _parts(text: str) -> tuple[str, str, str]:
    """A text without its end, the marks of that, and what closes behind them."""
    body = text.rstrip(f"{_CLOSING} ")
    stem = body.rstrip(f"{_SIGNS} ")
    return stem, body[len(stem) :], text[len(body) :]


def _sorts(closing: str) -> list[str]:
    return [sign if sign in ")]}）」』】" else '"' for sign in closing if not sign.isspace()]


def _plain(signs: str, language: str) -> str:
    if primary_language(language) == "el":
        signs = signs.replace(";", "?")
    return signs.translate(_PLAIN).replace("...", "…")


def _of_language(signs: str, language: str) -> str:
    primary = primary_language(language)
    if primary in _WITHOUT_END:
        return signs.replace(".", "")
    own = OWN_MARKS.get(primary, "")[:3]
    return signs.translate(str.maketrans(_WHOLE_ENDS, own)) if own else signs


def _begun(answer: str, shown: str, source: str, target: str, count_pieces: CountPieces) -> str:
    first, word = _WORD.search(shown), _WORD.search(answer)
    if first is None or word is None or answer[: word.start()].strip():
        return answer
    letter, start = word[0][0], word.start()
    if not (letter.isalpha() and word[0][1:] == word[0][1:].lower()):
        return answer
    if first[0][0].isupper() and letter.islower():
        # A German noun that stands alone has its capital anyway.
        is_noun = primary_language(source) in _CAPITAL_NOUNS and first[0] == shown.strip()
        return answer if is_noun else capitalised(answer, start)
    if first[0][0].islower() and letter.isupper() and not _has_capital(word[0], answer, target, count_pieces):
        return answer[:start] + in_small_letters(letter) + answer[start + 1 :]
    return answer


def _has_capital(word: str, answer: str, language: str, count_pieces: CountPieces) -> bool:
    """Whether an answer's first word has its capital anywhere: it is fewer pieces with it, as a name, or "I".

    Where nouns have one, a word is left as the model wrote it, unless it is known to begin sentences only and
    is not all of the answer.
    """
    primary = primary_language(language)
    if primary in _CAPITAL_NOUNS:
        return answer.strip() == word or word.lower() not in rules_for(primary).starters
    large, small = count_pieces([word, word.lower()])
    return large < small or re.split("['’]", word)[0] == "I"
