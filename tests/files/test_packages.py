"""Documents that are a zip: each gives its texts and takes their translations, and keeps all else."""

import io
import itertools
import re
import shutil
import subprocess
import warnings
import zipfile
from html import escape
from pydoc_data.topics import topics
from xml.etree import ElementTree
from xml.parsers import expat

import pytest
from tests.files.documents import (
    capitals,
    docx,
    drawn,
    drawn_run,
    epub,
    input_of,
    opened,
    package,
    paragraph,
    pptx,
    read_part,
    text_run,
    xlsx,
)

from dragoman.jobs import JobError
from dragoman_files.format import FormatOptions
from dragoman_files.opening import open_format

TEXTS = [
    text
    for text in (" ".join(part.split()) for part in topics["compound"].split("\n\n"))
    if re.search("[a-z]", text)
][:30]
"""Paragraphs of Python's manual, with characters that XML escapes."""
ESCAPED = [escape(text, quote=False) for text in TEXTS]


def odt_of(texts) -> bytes:
    middle = len(texts) // 2
    body = "".join(f"<text:p>{text}</text:p>" for text in texts[:middle])
    return opened(body, header="".join(f"<text:h>{text}</text:h>" for text in texts[middle:]))


def ods_of(texts) -> bytes:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    rows = "".join(f"<table:table-row>{cell.format(text)}</table:table-row>" for text in texts)
    return opened(f'<table:table table:name="Blatt">{rows}</table:table>', kind="spreadsheet")


def pptx_of(texts) -> bytes:
    middle = len(texts) // 2
    return pptx(*map(drawn, texts[:middle]), notes="".join(map(drawn, texts[middle:])))


def xlsx_of(texts) -> bytes:
    middle = len(texts) // 2
    inline = "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in texts[middle:])
    return xlsx(*(f"<t>{text}</t>" for text in texts[:middle]), cells=f"<row>{inline}</row>")


def epub_of(texts) -> bytes:
    return epub(*(f"<p>{text}</p>" for text in texts[1:]), title=texts[0], language="en")


MAKERS = {"odt": odt_of, "ods": ods_of, "pptx": pptx_of, "xlsx": xlsx_of, "epub": epub_of}
PARAGRAPHS = {"odt": ("p", "h"), "ods": ("p",), "pptx": ("p",), "xlsx": ("si", "is"), "epub": ("p", "title")}


def local(element) -> str:
    return element.tag.rpartition("}")[2]


def texts_of(content: bytes, *paragraphs: str) -> list[str]:
    """The texts of all paragraphs, by the standard library's readers."""
    texts = []
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            if name.endswith((".xml", ".xhtml", ".opf", ".ncx")):
                for element in ElementTree.fromstring(archive.read(name)).iter():
                    if local(element) in paragraphs:
                        texts.append(" ".join("".join(element.itertext()).split()))
    return [text for text in texts if text]


def pack(name: str, content: bytes, translate) -> bytes:
    """The document as it is written with these translations."""
    form, source, packed = open_format(name, FormatOptions()), input_of(content), io.BytesIO()
    written = b"".join(unit.write(translate(unit.text), {}) for unit in form.units(source))
    form.package(source.stream).pack(io.BytesIO(written), packed)
    return packed.getvalue()


def contents(content: bytes) -> list[tuple[str, int, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(info.filename, info.compress_type, archive.read(info)) for info in archive.infolist()]


@pytest.mark.parametrize("name", MAKERS)
def test_texts_are_translated_and_all_other_parts_stay(translate, name):
    given = MAKERS[name](ESCAPED)
    written = translate(name, given)
    assert sorted(texts_of(written, *PARAGRAPHS[name])) == sorted(text.upper() for text in TEXTS)
    tags = re.compile(rb"<[^<>]*>")
    pairs = zip(contents(given), contents(written), strict=True)
    for (old, old_type, before), (new, new_type, after) in pairs:
        assert (old, old_type) == (new, new_type)
        assert tags.findall(before) == tags.findall(after)
        if not old.endswith((".xml", ".xhtml", ".opf", ".ncx")):
            assert before == after


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("translate_text", [lambda text: None, lambda text: text], ids=["none", "same"])
def test_a_translation_that_changes_nothing_gives_the_same_parts(name, translate_text):
    given = MAKERS[name](ESCAPED)
    assert contents(pack(name, given, translate_text)) == contents(given)


def test_cells_that_write_themselves_stay_and_comments_are_texts(translate):
    cells = (
        '<table:table-cell office:value-type="date"><text:p>3. März</text:p>{0}'
        '<table:table-cell office:value-type="float" office:value="5"><text:p>5 Stück</text:p>{0}'
        '<table:table-cell table:formula="of:=[.A1]" office:value-type="string"><text:p>Hund</text:p>{0}'
        '<table:table-cell office:value-type="string"><office:annotation>'
        "<text:p>Ein Tier.</text:p></office:annotation><text:p>Der Hund</text:p>{0}"
    ).format("</table:table-cell>")
    table = f'<table:table table:name="Tiere"><table:table-row>{cells}</table:table-row></table:table>'
    given = opened(table, kind="spreadsheet")
    written = read_part(translate("ods", given), "content.xml")
    assert written == capitals(read_part(given, "content.xml"), "Ein Tier.", ">Der Hund<")


def test_a_part_keeps_its_mark_of_byte_order(translate):
    with zipfile.ZipFile(io.BytesIO(opened("<text:p>ja</text:p>"))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["content.xml"] = b"\xef\xbb\xbf" + parts["content.xml"]
    written = translate("odt", package({**parts, "mimetype": parts["mimetype"].decode()}))
    assert read_part(written, "content.xml").startswith("\ufeff<?xml")
    assert "<text:p>JA</text:p>" in read_part(written, "content.xml")


@pytest.mark.parametrize("name", MAKERS)
def test_a_document_of_another_kind_is_refused(refuse, name):
    for other, make in MAKERS.items():
        if other != name:
            refuse(f"in.{name}", make(ESCAPED[:2]), rf"in\.{name} can't be read as \.{name}: ")


def test_words_of_a_slide_keep_their_look_whatever_else_their_runs_state(translate, server):
    given = pptx(
        drawn(
            "Der ",
            '<a:r><a:rPr lang="de-DE" err="1"/><a:t>gro</a:t></a:r>',
            drawn_run("ße "),
            drawn_run("Hund", 'b="1"'),
            " schläft auf Folie ",
            '<a:fld id="{1}" type="slidenum"><a:rPr lang="de-DE"/><a:t>7</a:t></a:fld>',
            " hier.",
        )
    )
    written = read_part(translate("pptx", given), "ppt/slides/slide1.xml")
    assert "xml:space" not in written
    assert re.findall(r'<a:rPr lang="de-DE" ?(b="1")?[^<>]*/><a:t>([^<]*)<', written) == [
        ("", "DER GROSSE "),
        ('b="1"', "HUND"),
        ("", " SCHLÄFT AUF FOLIE "),
        ("", "7"),
        ("", " HIER."),
    ]
    ElementTree.fromstring(written)
    assert len([text for text in server.servicer.texts if text]) == 1


def test_cells_keep_formulas_numbers_lines_and_looks(translate):
    cells = (
        '<row r="9"><c r="A9"><f>IF(A1="ja",1,2)</f><v>2</v></c><c r="B9" t="str"><f>A1</f><v>ja</v></c>'
        '<c r="C9" s="3"><v>45000</v></c><c r="D9" t="b"><v>1</v></c></row>'
    )
    strings = (
        '<t xml:space="preserve"> ja </t>',
        "<t>2,5</t>",
        "<t>eins.\nzwei\n</t>",
        "<r><t>der </t></r><r><rPr><b/></rPr><t>hund</t></r><r><t xml:space='preserve'> ist\nda</t></r>",
    )
    written = translate("xlsx", xlsx(*strings, cells=cells))
    assert cells in read_part(written, "xl/worksheets/sheet1.xml")
    shared = read_part(written, "xl/sharedStrings.xml")
    ElementTree.fromstring(shared)
    first = '<si><t xml:space="preserve"> JA </t></si><si><t>2,5</t></si><si><t>EINS.\nZWEI\n</t></si>'
    assert first in shared
    assert re.findall(r"<rPr><b/></rPr><t[^<>]*>([^<>]*)<", shared) == ["HUND"]
    assert texts_of(written, "si")[-1] == "DER HUND IST DA"
    assert "IST\nDA" in shared


def test_the_names_of_a_tables_columns_stay_in_its_first_row(translate):
    """Formulas and the table itself name them."""
    table = '<tableColumn id="1" name="preis"/><tableColumn id="2" name="name_x000a_des tiers"/>'
    strings = ("<t>preis</t>", "<t>name\ndes tiers</t>", "<t>hund</t>")
    written = translate("xlsx", xlsx(*strings, table=table))
    assert texts_of(written, "si") == ["preis", "name des tiers", "HUND"]


def test_a_book_keeps_its_links_and_says_its_new_language(translate):
    chapter = (
        '<h1 id="a">Kapitel</h1><p class="x">Der <a href="k%200.xhtml#a"><b>alte</b> Hund</a>&#160;ruht.</p>'
        '<p lang="de-AT">ja</p><p xml:lang="la">nein</p><pre lang="de">x</pre>'
    )
    given = epub(chapter, title="Der Hund", language="de")
    written = translate("epub", given)
    page = read_part(written, "OEBPS/text/k 0.xhtml")
    assert 'lang="en" xml:lang="en"' in page
    assert (
        '<h1 id="a">KAPITEL</h1><p class="x">DER <a href="k%200.xhtml#a"><b>ALTE</b> HUND</a>&#160;RUHT.</p>'
        '<p lang="en">JA</p><p xml:lang="la">NEIN</p><pre lang="en">x</pre>'
    ) in page
    package = read_part(written, "OEBPS/book.opf")
    assert "<dc:title>DER HUND</dc:title><dc:creator>Wer</dc:creator><dc:language>en</dc:language>" in package
    assert "<text>EINS</text>" in read_part(written, "OEBPS/toc.ncx")
    before = read_part(given, "OEBPS/book.opf")
    assert package == before.replace("Der Hund", "DER HUND").replace("<dc:language>de", "<dc:language>en")


@pytest.mark.parametrize(
    ("within", "is_cut"),
    [
        ('<text:span text:style-name="T1">alte </text:span>', False),
        ('<text:a><text:span text:style-name="T1">alte </text:span></text:a>', False),
        ('<text:bookmark text:name="a"/>', False),
        ("<text:page-number>7</text:page-number> ", False),
        ("<text:s/>", False),
        ("<office:annotation><text:p>Nicht dies</text:p></office:annotation>", False),
        ("<text:line-break/>", True),
        ("<text:tab/>", True),
    ],
)
def test_what_stands_within_a_sentence_of_open_document(translate, server, within, is_cut):
    sentence = f"<text:p>Der <text:span>Hund</text:span> {within}schläft\ndort.</text:p>"
    written = read_part(translate("odt", opened(sentence)), "content.xml")
    ElementTree.fromstring(written)
    old = ["alte"] if "alte" in within else []
    assert capitals(sentence, "Der ", "Hund<", "schläft\ndort.", *old) in written
    sent = [text for text in server.servicer.texts if text]
    assert len(sent) == 1 + is_cut


def test_what_was_deleted_from_open_document_stays(translate):
    deleted = "<text:deletion><text:p>alt</text:p></text:deletion>"
    body = f"<text:tracked-changes>{deleted}</text:tracked-changes><text:p>neu</text:p>"
    assert capitals(body, "neu") in read_part(translate("odt", opened(body)), "content.xml")


def test_a_note_of_open_document_is_translated(translate):
    note = (
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>{}</text:p>"
        "</text:note-body></text:note>"
    )
    written = translate("odt", opened(f"<text:p>Der Hund.{note.format('Ein Tier.')}</text:p>"))
    assert f"<text:p>DER HUND.{note.format('EIN TIER.')}</text:p>" in read_part(written, "content.xml")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("soffice") is None, reason="there is no soffice here")
@pytest.mark.parametrize("name", ["odt", "ods", "pptx", "xlsx"])
def test_libreoffice_opens_what_is_written(translate, tmp_path, name):
    """A document that LibreOffice wrote, or ours, is translated, and opened and read by it."""
    (tmp_path / f"in.{name}").write_bytes(translate(name, MAKERS[name](ESCAPED)))
    target = {"pptx": "odp", "xlsx": "ods", "ods": "fods"}.get(name, "fodt")
    subprocess.run(
        [
            *("soffice", "--headless", f"-env:UserInstallation=file://{tmp_path}/profile"),
            *("--convert-to", target, "--outdir", str(tmp_path), str(tmp_path / f"in.{name}")),
        ],
        check=True,
        timeout=300,
    )
    converted = tmp_path / f"in.{target}"
    is_flat = target.startswith("f")
    content = converted.read_text() if is_flat else read_part(converted.read_bytes(), "content.xml")
    shown = ["".join(element.itertext()) for element in ElementTree.fromstring(content).iter()]
    for text in itertools.islice(TEXTS, 10):
        assert any(text.upper() in " ".join(each.split()) for each in shown)


BODY = "word/document.xml"
TYPES = '<Types><Override PartName="/word/document.xml" ContentType="a.document.main+xml"/></Types>'
WHOLE = docx(paragraph("ja") * 20)


def zipped(**parts: str | bytes) -> bytes:
    names = {"types": "[Content_Types].xml", "body": BODY}
    return package({names.get(name, name): content for name, content in parts.items()})


def damaged() -> bytes:
    """The document with a byte of its body changed."""
    with zipfile.ZipFile(io.BytesIO(WHOLE)) as archive:
        place = archive.getinfo(BODY).header_offset + 30 + len(BODY) + 20
    return WHOLE[:place] + bytes([WHOLE[place] ^ 0xFF]) + WHOLE[place + 1 :]


NONE = {
    "empty": (b"", "File is not a zip file.*save it as .docx"),
    "text": (b"hallo\n", "File is not a zip file"),
    "beginning": (b"PK\x03\x04 hallo", "File is not a zip file"),
    "older": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "has a password or is of another kind"),
    "cut off": (WHOLE[:-30], "File is not a zip file"),
    "damaged": (damaged(), "damaged|invalid|Error -3"),
    "OpenDocument": (zipped(mimetype="application/vnd.oasis"), r"the zip has no \[Content_Types\]\.xml"),
    "sheet": (zipped(types=TYPES.replace("document.main", "sheet.main"), body="<a/>"), "none of its parts"),
    "no body": (zipped(types=TYPES), "none of its parts is the main one of such a document"),
    "no types": (zipped(types=b"\xff\x00<<<", body="<a/>"), "no well-formed XML"),
    "empty body": (zipped(types=TYPES, body=""), "no well-formed XML"),
    "text for a body": (zipped(types=TYPES, body="hallo"), "no well-formed XML"),
    "bytes": (zipped(types=TYPES, body=b"\xff<a/>"), "not in UTF-8"),
    "unclosed": (zipped(types=TYPES, body="<w:document><w:body><w:p><w:r><w:t>a"), "no well-formed XML"),
    "nested": (zipped(types=TYPES, body="<w:p>" * 20_000), "no well-formed XML"),
    "entity": (zipped(types=TYPES, body='<!DOCTYPE a [<!ENTITY a "b">]><a>&a;</a>'), "it declares an entity"),
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_document_is_refused(refuse, name):
    assert "in.docx" in refuse("in.docx", *NONE[name])


FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGEREF a </w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>7</w:t></w:r>'
    '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)


@pytest.mark.parametrize(
    "within",
    [
        '<w:r><w:rPr><w:rStyle w:val="a"/></w:rPr><w:footnoteReference w:id="2"/></w:r>',
        '<w:commentRangeStart w:id="3"/><w:commentRangeEnd w:id="3"/><w:r><w:commentReference/></w:r>',
        "<w:r><w:softHyphen/></w:r>",
        "<w:r><w:drawing><wp:inline/></w:drawing></w:r>",
        '<w:del w:id="1"><w:r><w:delText>alt</w:delText></w:r></w:del>',
        FIELD,
        f'<w:sdt><w:sdtPr><w:id w:val="1"/></w:sdtPr><w:sdtContent>{text_run("er ")}</w:sdtContent></w:sdt>',
    ],
    ids=["footnote", "comment", "soft hyphen", "picture", "deletion", "page", "control"],
)
def test_what_a_sentence_is_complete_without_does_not_cut_it(translate, server, within):
    given = docx(paragraph("Der Hund ", within, "schläft."))
    translated = read_part(translate("docx", given))
    expat.ParserCreate().Parse(translated, True)
    unread = r"<w:instrText>.*?</w:instrText>|<w:delText>.*?</w:delText>|<[^>]*>|\s|7"
    assert re.sub(unread, "", translated) in ("DERHUNDSCHLÄFT.", "DERHUNDERSCHLÄFT.")
    kept = r"<w:(?:footnoteRef|commentRef|drawing|softH|del |fldChar|sdtPr|instr)[^>]*>"
    for tag in re.findall(kept, within):
        assert translated.count(tag) == within.count(tag)
    assert len([text for text in server.servicer.texts if text]) == 1


def test_a_name_that_a_document_holds_twice_is_refused_without_a_word_on_stderr(run, tmp_path, capfd):
    file = io.BytesIO(WHOLE)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(BODY, "<a/>")
    (tmp_path / "in.docx").write_bytes(file.getvalue())
    with pytest.raises(JobError, match=r"it holds 'word/document\.xml' more than once"):
        run(tmp_path / "in.docx", tmp_path / "out.docx")
    assert capfd.readouterr().err == ""
