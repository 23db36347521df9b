"""Accelerators in catalogues and XLIFF: none is shown to a model, and one is in the translation."""

import io
import re

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.documents import xliff

from dragoman_files.format import FormatName, FormatOptions, Input
from dragoman_files.opening import open_format

WORDS = ["Datei", "öffnen", "Speichern", "unter", "Beenden", "Ansicht", "Größe", "neu"]


def through(name: FormatName, content: str, translation: str) -> tuple[list[str], str]:
    """The texts of a file, and the file with this translation of each."""
    stream = io.BytesIO(content.encode())
    units = list(open_format(name, FormatOptions()).units(Input(name="x", stream=stream, position=lambda: 0)))
    written = b"".join(unit.write(translation if unit.text else None, {}) for unit in units)
    return [unit.text for unit in units], written.decode()


def of_catalogue(text: str, translation: str) -> tuple[list[str], str]:
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    texts, written = through("po", f"{header}{polib.POEntry(msgid=text)}", translation)
    return texts, polib.pofile(written)[0].msgstr


@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    place=st.integers(0, 30),
    mark=st.sampled_from("&_"),
    translation=st.lists(
        st.sampled_from(["Save", "as", "file", "%s", "{name}", "open", "Äh", "..."]), min_size=1
    ),
)
def test_a_translation_has_the_mark_once_before_a_letter(
    words: list[str], place: int, mark: str, translation: list[str]
) -> None:
    letters = [found.start() for found in re.finditer(r"\b\w" if mark == "_" else r"\w", " ".join(words))]
    start = letters[place % len(letters)]
    text = " ".join(words)
    texts, written = of_catalogue(f"{text[:start]}{mark}{text[start:]}", " ".join(translation))
    assert texts == [text]
    assert written.replace(mark, "") == " ".join(translation)
    if {*translation} <= {"%s", "{name}", "..."}:
        assert mark not in written
    else:
        assert re.findall(f"{mark}.", written)[0][1].isalpha()
        assert not re.search(rf"[%{{]\w*{mark}", written), written


@pytest.mark.parametrize(
    ("text", "translation", "written"),
    [
        ("&Speichern", "Save", "&Save"),
        ("B&eenden", "Quit", "&Quit"),
        ("Speichern &unter …", "Save as guest user", "Save as guest &user"),
        ("_Öffnen", "Open", "_Open"),
        ("&Datei", "文件", "文件(&D)"),
    ],
)
def test_it_stands_at_the_same_letter_where_there_is_one(text: str, translation: str, written: str) -> None:
    assert of_catalogue(text, translation) == ([text.replace("&", "").replace("_", "")], written)


@pytest.mark.parametrize(
    "text",
    [
        "AT&T",
        "Tom & Anna",
        "Fragen Q&A",
        "&copy; Firma",
        "user_id fehlt",
        "__name__ fehlt",
        "Ja && nein",
        "Siehe a.de/?b=1&c=2",
        "&a &b",
    ],
)
def test_other_signs_are_none(text: str) -> None:
    assert of_catalogue(text, "x y") == ([text], "x y")


def test_xliff_has_them_as_references() -> None:
    unit = '<trans-unit id="1"><source>&amp;Datei <g id="1">neu</g></source></trans-unit>'
    texts, written = through("xliff", xliff(unit), "File <g3>new</g3>")
    assert "&" not in texts[0]
    assert '<target>&amp;File <g id="1">new</g></target>' in written
