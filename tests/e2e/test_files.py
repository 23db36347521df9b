"""`dragoman translate-file` on catalogues, XLIFF and documents of Word, by the shipped model."""

import difflib
import io
import json
import re
import shutil
import subprocess
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import polib
import pytest
from click.testing import CliRunner
from tests.files.documents import (
    docx,
    drawn,
    drawn_run,
    epub,
    many,
    opened,
    paragraph,
    pptx,
    read_part,
    text_run,
    xliff,
    xlsx,
)
from tests.server.server_process import COMMAND, ServerProcess

from dragoman.cli import main

HOUSE = Path(__file__).parents[2]
DE_EN = ("--from", "de", "--to", "en", "--beam", "1")
XLIFF = "{urn:oasis:names:tc:xliff:document:1.2}"
Translate = Callable[..., bytes]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(HOUSE / "models") as server:
        yield server
        assert server.stop()[0] == 0


@pytest.fixture
def translate(server: ServerProcess, tmp_path: Path) -> Translate:
    """What the command makes of a content under a name."""

    def call(name: str, content: str | bytes) -> bytes:
        source, output = tmp_path / f"in.{name}", tmp_path / f"out.{name}"
        source.write_bytes(content.encode() if isinstance(content, str) else content)
        arguments = ["translate-file", "--server", server.address, *DE_EN, str(source), str(output)]
        ran = CliRunner().invoke(main, arguments)
        assert ran.exit_code == 0, ran.output
        assert {path.name for path in tmp_path.iterdir()} == {source.name, output.name}
        return output.read_bytes()

    return call


CATALOGUE = r"""# Ein Kommentar am Anfang.
msgid ""
msgstr ""
"Project-Id-Version: Dragoman 1\n"
"Last-Translator: Anna <anna@example.com>\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. Für wen das ist.
#: a.py:1
#, python-format
msgctxt "Gruß"
msgid "Guten Morgen, %(name)s!"
msgstr ""

msgid "Ich habe Hunger."
msgstr "Me hungry."

#, fuzzy
#| msgid "Wo bist du?"
msgid "Wo ist er?"
msgstr "Where are you?"

#, c-format
msgid "%d Hund"
msgid_plural "%d Hunde"
msgstr[0] ""
msgstr[1] ""

msgid ""
"Die Datei <b>ist da</b>.\n"
"Hier ist \"{file}\".\n"
msgstr ""

#~ msgid "Alt"
#~ msgstr ""
"""


def test_a_catalogue_keeps_its_header_its_plural_forms_and_what_is_fuzzy(translate: Translate) -> None:
    written = translate("po", CATALOGUE).decode()
    before, after = polib.pofile(CATALOGUE), polib.pofile(written)
    assert after.metadata == before.metadata
    greeting, hungry, fuzzy, dogs, file, old = after
    assert re.fullmatch(r"Good morning, %\(name\)s[!.]", greeting.msgstr)
    assert hungry.msgstr == "Me hungry."
    assert (fuzzy.msgstr, fuzzy.flags, fuzzy.previous_msgid) == ("Where are you?", ["fuzzy"], "Wo bist du?")
    assert set(dogs.msgstr_plural) == {0, 1}
    assert [text.count("%d") for text in dogs.msgstr_plural.values()] == [1, 1]
    assert "dog" in dogs.msgstr_plural[0]
    assert (file.msgstr.count("<b>"), file.msgstr.count("</b>"), file.msgstr.count("{file}")) == (1, 1, 1)
    assert (file.msgstr.count("\n"), file.msgstr[-1]) == (2, "\n")
    assert (old.obsolete, old.msgstr) == (1, "")
    # Nothing but lines of translations is other than it was; a longer one keeps its first, which is empty.
    changed = [
        line for line in difflib.ndiff(CATALOGUE.splitlines(), written.splitlines()) if line.startswith("-")
    ]
    assert sorted(changed) == ['- msgstr ""', '- msgstr[0] ""', '- msgstr[1] ""']


UNITS = """<trans-unit id="1"><source>Ich habe <g id="1">keine Zeit</g>, weil <x id="2"/> da ist.</source></trans-unit>
<trans-unit id="2" translate="no"><source>Bleibt.</source></trans-unit>
<trans-unit id="3"><source>Der <bpt id="1">&lt;b&gt;</bpt>Hund<ept id="1">&lt;/b&gt;</ept> schläft.
Die <mrk mtype="protected">Maus</mrk> auch.</source><target state="new"></target><note>Für wen</note></trans-unit>
<trans-unit id="4"><source>Fertig.</source><target state="final">Done.</target></trans-unit>
<trans-unit id="5"><source>10&#160;km &amp; <ph id="1">{0}</ph> sind <mrk mtype="term">weit</mrk>.</source></trans-unit>
"""  # noqa: E501


def test_xliff_has_the_markup_of_a_source_in_its_target_once_around_the_same_words(
    translate: Translate,
) -> None:
    given = xliff(UNITS)
    written = translate("xliff", given).decode()
    root = ElementTree.fromstring(written)
    units = {unit.get("id"): unit for unit in root.iter(f"{XLIFF}trans-unit")}
    for unit in ("1", "3", "5"):
        source, target = (units[unit].find(f"{XLIFF}{name}") for name in ("source", "target"))
        assert source is not None
        assert target is not None
        assert _inline(target) == _inline(source)
    targets = {unit: "".join(units[unit].find(f"{XLIFF}target").itertext()) for unit in ("1", "3", "5")}  # type: ignore[union-attr]
    assert "time" in "".join(list(units["1"].iter(f"{XLIFF}g"))[1].itertext())
    assert re.match(r"The <b>dog</b> is (asleep|sleeping)\.\n", targets["3"])
    assert "\xa0" in targets["5"]
    # Without the targets it is what it was, to the byte.
    without = re.sub(r"<target(?! state)>.*?</target>", "", written, flags=re.DOTALL)
    emptied = re.sub(
        r'<target state="translated">.*?</target>', '<target state="new"></target>', without, flags=re.DOTALL
    )
    assert emptied == given


def _inline(element: ElementTree.Element) -> Counter[tuple[str, str, str]]:
    own = [child for child in element.iter() if child is not element]
    texts = ["" if child.tag.endswith(("g", "mrk")) else child.text or "" for child in own]
    looks = [str(sorted(child.items())) for child in own]
    return Counter(zip([child.tag for child in own], looks, texts, strict=True))


def test_a_document_of_word_keeps_its_styles_its_links_and_all_other_parts(translate: Translate) -> None:
    link = '<w:hyperlink r:id="rId9">'
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
        + text_run("Guten Morgen!")
        + "</w:p>"
        + paragraph(text_run("Ich habe "), text_run("keine Zeit", "<w:b/>"), ", weil Tom da ist.")
        + paragraph("Wir gehen mit ", link, text_run("unserem Hund", "<w:u/>"), "</w:hyperlink>", " heim.")
        + paragraph("Der ", '<w:bookmarkStart w:id="1"/>', "Hund", '<w:bookmarkEnd w:id="1"/>', " schläft.")
        + "<w:tbl><w:tr><w:tc>"
        + paragraph(text_run("Danke!", "<w:i/>"))
        + "</w:tc></w:tr></w:tbl>"
    )
    given = docx(body, header=paragraph("Hallo!"), footnotes=paragraph("Ja."))
    written = translate("docx", given)
    runs = [_looks(content) for content in (given, written)]
    assert set(runs[0]) == set(runs[1])
    assert "time" in runs[1]["<w:b/>"]
    assert "dog" in runs[1]["<w:u/>"]
    assert runs[1]["<w:i/>"].rstrip("s.!").casefold() in ("thank", "thank you")
    structure = r"</?w:(?:p|tbl|tr|tc|pPr|pStyle|hyperlink|bookmark\w+)(?: [^<>]*)?/?>"
    before, after = (re.findall(structure, read_part(content)) for content in (given, written))
    assert Counter(after) == Counter(before)
    assert [tag for tag in after if "ookmark" not in tag] == [tag for tag in before if "ookmark" not in tag]
    assert "Hallo" not in read_part(written, "word/header1.xml")
    contents = [zipfile.ZipFile(io.BytesIO(content)) for content in (given, written)]
    assert contents[0].namelist() == contents[1].namelist()
    for name in contents[0].namelist():
        if not name.startswith("word/") or "media" in name:
            assert contents[0].read(name) == contents[1].read(name)


_SENTENCE = "<{tag}>Ich habe {}keine Zeit{}, weil Tom da ist.</{tag}>"
BOLD = {
    "odt": opened(_SENTENCE.format('<text:span text:style-name="b">', "</text:span>", tag="text:p")),
    "epub": epub(_SENTENCE.format("<b>", "</b>", tag="p")),
    "pptx": pptx(drawn("Ich habe ", drawn_run("keine Zeit", 'b="1"'), ", weil Tom da ist.")),
    "xlsx": xlsx(
        "<r><t xml:space='preserve'>Ich habe </t></r><r><rPr><b/></rPr><t>keine Zeit</t></r>"
        "<r><t>, weil Tom da ist.</t></r>"
    ),
}
_BOLD = r'(?:style-name="b"|<b|<b/></rPr><t[^<>]*|b="1"[^<>]*/><a:t)>([^<>]*)<'


@pytest.mark.parametrize("name", BOLD)
def test_a_bold_word_is_bold_in_its_translation_whatever_the_document(
    translate: Translate, name: str
) -> None:
    written = zipfile.ZipFile(io.BytesIO(translate(name, BOLD[name])))
    parts = [written.read(part).decode(errors="replace") for part in written.namelist()]
    found = [each for part in parts for each in re.findall(_BOLD, part)]
    assert len(found) == 1
    assert "time" in found[0]


def _looks(content: bytes) -> dict[str, str]:
    """The text of each look."""
    looks: dict[str, str] = {}
    for look, text in re.findall(
        r"<w:r [^<>]*>(?:<w:rPr>(.*?)</w:rPr>)?<w:t[^<>]*>([^<>]*)</w:t>", read_part(content)
    ):
        looks[look] = looks.get(look, "") + text
    return looks


SENTENCES = [
    f"{who} {what} {where}."
    for who in ("Der Hund", "Die Katze", "Tom", "Meine Mutter", "Das Kind")
    for what in ("schläft", "wartet", "spielt", "ist", "sitzt", "steht")
    for where in ("hier", "im Garten", "zu Hause", "in Berlin", "unter dem Tisch", "vor der Tür", "im Haus")
]
NUM_TEXTS = len(SENTENCES)


@pytest.mark.parametrize("name", ["po", "docx", pytest.param("xliff", marks=pytest.mark.long)])
def test_a_killed_job_on_a_document_comes_to_the_same_bytes(
    server: ServerProcess, translate: Translate, tmp_path: Path, name: str
) -> None:
    if name == "docx":
        content = docx("".join(map(paragraph, SENTENCES)))
    else:
        pattern = re.compile(rb"(?<=[>\"])zeile (\d+)(?=[<\"]\W)")
        content = pattern.sub(lambda found: SENTENCES[int(found[1])].encode(), many(NUM_TEXTS, name))
    folder = tmp_path / "killed"
    folder.mkdir()
    source, output = folder / f"in.{name}", folder / f"out.{name}"
    source.write_bytes(content)
    options = ["--server", server.address, *DE_EN, "--window", "2"]
    command = [*COMMAND, "translate-file", *options, str(source), str(output)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    journal = folder / f"{output.name}.progress.json"
    while process.poll() is None and not _num_done(journal):
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert 0 < _num_done(journal) < NUM_TEXTS
    assert not output.exists()
    ran = CliRunner().invoke(main, command[len(COMMAND) :])
    assert ran.exit_code == 0, ran.output
    assert "Going on after" in ran.stderr
    written = output.read_bytes()
    shutil.rmtree(folder)
    assert written == translate(name, content)


def _num_done(journal: Path) -> int:
    try:
        return int(json.loads(journal.read_text())["checkpoint"]["lines"])
    except (FileNotFoundError, ValueError):
        return 0
