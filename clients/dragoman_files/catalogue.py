"""Catalogues of messages of gettext (.po, .pot): messages without a translation get one, plural forms too.

polib reads, checks, wraps and escapes. What it would write anew, such as headers and the wrapping of others,
stays as it is: the lines of a translation alone are replaced.
"""

import gettext
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dragoman_files.document import Segment
from dragoman_files.format import TEXT_BYTES, FileError, Reading
from dragoman_files.texts import has_letters, read_table

if TYPE_CHECKING:
    from polib import POEntry, POFile

DECLARED = re.compile(rb"""^"Content-Type:[^"\n]*charset=(?!CHARSET(?![\w.:-]))([\w.:-]+)""", re.MULTILINE)
"""The charset that the header states; a template states "CHARSET"."""
_HEADER = re.compile(r'^msgid[ \t]+""[ \t]*\r?\n(?=msgstr)', re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"')
_STRING = re.compile(
    r'^(?P<keyword>msgstr(?:\[\d+\])?)[ \t]*(?:"(?:[^"\\\n]++|\\.)*+"[ \t]*+\r?\n?)++', re.MULTILINE
)
"""The lines of a translation. Obsolete ones begin otherwise."""
_EMPTY_FORMS = re.compile(r'(?:^msgstr\[\d+\][ \t]*""[ \t]*(?:\r?\n|\Z)(?!"))++(?!msgstr)', re.MULTILINE)
"""The plural forms of a message that has none yet."""
_LINE = re.compile(r"[^\n]+")
_LINE_BYTES = 200
MAX_LINES = 10_000
"""Lines of a message and of the comments on the next one: polib takes the square of their number."""
MAX_QUOTED = 200
"""Characters of a header that an error repeats."""
_PLURALS = re.compile(r"nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;]+);?")


def prepare(source: str, reading: Reading) -> str:
    """The catalogue; what a template leaves open becomes the target language's: charset, name, plurals."""
    header = _HEADER.search(source)
    string = None if header is None else _STRING.match(source, header.end())
    if reading.target_language is None or string is None:
        return source
    language = reading.target_language.replace("-", "_")
    num_forms, rule = _plural_forms(language.split("_")[0].lower())
    head = string[0].replace("charset=CHARSET", "charset=UTF-8", 1)
    named = f'"Language: {language}\\n"'
    head = re.sub(r'^"Language:[ \t]*\\n"', lambda match: named, head, flags=re.MULTILINE)
    before, rest = source[: string.start()], source[string.end() :]
    if head != string[0]:
        # Nobody has looked at a template's header, says its mark.
        before = re.sub(r"^#, fuzzy[ \t]*\r?\n(?=msgid)", "", before, count=1, flags=re.MULTILINE)
    if "nplurals=INTEGER" in head:
        head = re.sub('nplurals=INTEGER[^\\\\"]*', f"nplurals={num_forms}; plural={rule};", head)
        forms = "".join(f'msgstr[{form}] ""\n' for form in range(num_forms))
        newline = "\r\n" if "\r\n" in source else "\n"
        rest = _EMPTY_FORMS.sub(forms.replace("\n", newline), rest)
    return before + head + rest


def _plural_forms(language: str) -> tuple[int, str]:
    """The number of forms of a language, and which one a number takes; of an unknown one, those of most."""
    for count, rules in read_table("plurals.toml").items():
        for rule, languages in rules.items():
            if language in languages.split():
                return int(count), rule
    return 2, "(n != 1)"


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The translations that are empty, of messages with a letter; what is fuzzy or obsolete stays.

    Raises FileError."""
    catalogue = _read(source, reading)
    singular = _singular_form(catalogue)
    header = _HEADER.search(source)
    start = -1 if header is None else header.end()
    strings = (string for string in _STRING.finditer(source) if string.start() != start)
    newline = "\r\n" if "\r\n" in source else "\n"
    for entry, form, text in _messages(catalogue, singular):
        keyword = "msgstr" if form is None else f"msgstr[{form}]"
        present = entry.msgstr if form is None else entry.msgstr_plural[form]
        string = next(strings, None)
        if string is None or string["keyword"] != keyword or _value(string[0]) != present:
            which = f"the message of line {entry.linenum or 1}"
            raise FileError(f"{which} has no {keyword} where it should stand")
        if not present and not entry.fuzzy and has_letters(text):
            end = string.start() + len(string[0].rstrip())
            write = partial(_written, keyword, text, newline)
            yield Segment(start=string.start(), end=end, text=text, write=write)


def _value(string: str) -> str:
    from polib import unescape

    return "".join(map(unescape, _QUOTED.findall(string)))


def _read(source: str, reading: Reading) -> "POFile":
    from polib import pofile

    reading.take(TEXT_BYTES * source.count("msgid"))
    num_lines = 0
    for line in _LINE.finditer(source):
        reading.take(_LINE_BYTES)
        num_lines = 0 if line[0].startswith(("msgid", "#~ msgid")) else num_lines + 1
        if num_lines > MAX_LINES:
            raise FileError(
                f"line {source.count(chr(10), 0, line.start()) + 1} is the {num_lines}th of one message "
                f"or of its comments, and at most {MAX_LINES} are read"
            )
    # It takes what has no line break for the name of a file.
    text = "\n".join(re.split(r"\r\n|\n", source)) + "\n"
    try:
        catalogue = pofile(text)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise FileError(f"no catalogue of gettext: {str(error)[:MAX_QUOTED]}") from None
    if not list(catalogue) and source.strip() and "msgid" not in source:
        raise FileError("no catalogue of gettext: there is no msgid")
    return catalogue


def _written(keyword: str, text: str, newline: str, translation: str) -> str:
    from polib import POEntry

    # gettext wants both to begin and to end with a line break, or none to.
    translation = translation.strip("\n")
    begin, end = len(text) - len(text.lstrip("\n")), len(text) - len(text.rstrip("\n"))
    entry = POEntry(msgid="", msgstr="\n" * begin + translation + "\n" * end)
    written = entry.__unicode__(wrapwidth=78).split("\nmsgstr ", 1)[1].rstrip("\n")
    return f"{keyword} {written}".replace("\n", newline)


def _messages(catalogue: "POFile", singular: int | None) -> Iterator[tuple["POEntry", int | None, str]]:
    """The message of each msgstr, in the file's order: its entry, its plural form, and its text."""
    for entry in sorted(catalogue, key=lambda entry: entry.linenum or 0):
        if entry.obsolete:
            continue
        if not entry.msgid_plural:
            yield entry, None, entry.msgid
            continue
        for form in sorted(entry.msgstr_plural):
            yield entry, form, entry.msgid if form == singular else entry.msgid_plural


def _singular_form(catalogue: "POFile") -> int | None:
    """The plural form of one thing; None where there is one form. Raises FileError for a broken header."""
    header = catalogue.metadata.get("Plural-Forms")
    if header is None or "INTEGER" in header:
        return 0
    match = _PLURALS.search(header)
    try:
        if match is None:
            raise ValueError("it has no nplurals and plural")
        num_forms = int(match[1])
        # What reads compiled catalogues in the standard library; not in the types.
        form = int(getattr(gettext, "c2py")(match[2])(1))  # noqa: B009
        if form >= num_forms:
            raise ValueError(f"it gives one thing form {form}, and has none above {num_forms - 1}")
    except (ValueError, ZeroDivisionError, RecursionError) as error:
        raise FileError(
            f"the header's Plural-Forms is broken: {header[:MAX_QUOTED]!r}: {str(error)[:MAX_QUOTED]}; "
            'a right one is "nplurals=2; plural=(n != 1);"'
        ) from None
    return form if num_forms > 1 else None
