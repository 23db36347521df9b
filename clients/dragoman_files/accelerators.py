"""Accelerators: the letter of a menu's entry that a key chooses, as "&File" and "_File" mark it.

A text is translated without its mark. The translation has it before the same letter where it has one, else
before its first.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dragoman_files.document import Segment

_MAX_WORDS = 6
_MAX_CHARACTERS = 400
"""A text of more words, or of more characters with its tags, is no entry of a menu."""
_ADDRESS = re.compile(r"\S*[/=?@]\S*")
"""Its signs are its own."""
_MARK = re.compile(r"(?:&amp;|&#38;|&)(?=[^\W_])(?!\w+;)|(?<!\w)_(?=[^\W_])(?!\w*_)")
_ABBREVIATION = re.compile(r"(?<=[A-Z])(?:&amp;|&#38;|&)(?=[A-Z](?![a-z]))")
"""Of "AT&T" and "Q&A"."""
_FIXED = re.compile(r"<[^<>]*>|&#?\w+;|[%$]\S+|\{[^{}]*\}|`[^`]*`")
"""Parts of a translation that are no words: tags, references, placeholders, code."""
_NAMED = re.compile(r"\{[^{}]*\}|%\([^()]*\)|[$:]\w+|`[^`]*`")
"""Placeholders and code, whose signs are a part of their names."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts whose letters are on no key: the source's stands in brackets behind."""


def without_accelerators(segments: Iterable[Segment], *, is_html: bool) -> Iterator[Segment]:
    """The segments, whose texts have no accelerator, and whose translations have it again."""
    for segment in segments:
        found = _found(segment.text, is_html=is_html)
        if found is None:
            yield segment
            continue
        start, end = found.span()
        yield replace(
            segment,
            text=segment.text[:start] + segment.text[end:],
            write=_writer(segment.write, found[0], segment.text[end]),
        )


def _found(text: str, *, is_html: bool) -> re.Match[str] | None:
    """The only mark of a text that may have one."""
    if len(text) > _MAX_CHARACTERS or ("&" not in text and "_" not in text) or len(text.split()) > _MAX_WORDS:
        return None
    if any("&" in found[0] or "_" in found[0] for found in _ADDRESS.finditer(re.sub("<[^<>]*>", "", text))):
        return None
    without_names = _NAMED.sub(lambda part: "\0" * len(part[0]), text)
    marks = [mark for mark in _MARK.finditer(without_names) if not is_html or mark[0] != "&"]
    if len(marks) != 1 or _ABBREVIATION.match(text, marks[0].start()):
        return None
    return marks[0] if is_html or len(marks[0][0]) == 1 else None


def _writer(write: Callable[[str], str], mark: str, letter: str) -> Callable[[str], str]:
    def written(translation: str) -> str:
        shown = _FIXED.sub(lambda part: "\0" * len(part[0]), translation)
        if _UNSPACED.search(shown):
            return write(f"{translation}({mark}{letter.upper()})")
        place = next(
            (
                found.start()
                for pattern in (rf"\b{re.escape(letter)}", re.escape(letter), r"[^\W\d_]")
                if (found := re.search(pattern, shown, re.IGNORECASE))
            ),
            None,
        )
        return write(translation if place is None else translation[:place] + mark + translation[place:])

    return written
