"""Documents of Word that are none, or damaged."""

import io
import re
import warnings
import zipfile
from xml.parsers import expat

import pytest
from tests.files.documents import docx, paragraph, read_part, text_run

from dragoman.jobs import JobError

BODY = "word/document.xml"
TYPES = '<Types><Override PartName="/word/document.xml" ContentType="a.document.main+xml"/></Types>'
WHOLE = docx(paragraph("ja") * 20)


def zipped(**parts: str | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr({"types": "[Content_Types].xml", "body": BODY}.get(name, name), content)
    return file.getvalue()


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
def test_what_is_no_document_is_refused_before_anything_is_written(run, tmp_path, name):
    content, told = NONE[name]
    (tmp_path / "in.docx").write_bytes(content)
    with pytest.raises(JobError, match=told) as raised:
        run(tmp_path / "in.docx", tmp_path / "out.docx")
    assert "in.docx" in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in.docx"]


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
        '<w:sdt><w:sdtPr><w:id w:val="1"/></w:sdtPr><w:sdtContent>'
        + text_run("er ")
        + "</w:sdtContent></w:sdt>",
    ],
    ids=["footnote", "comment", "soft hyphen", "picture", "deletion", "page", "control"],
)
def test_what_a_sentence_is_complete_without_does_not_cut_it(translate, server, within):
    given = docx(paragraph("Der Hund ", within, "schläft."))
    translated = read_part(translate("docx", given))
    expat.ParserCreate().Parse(translated, True)
    assert re.sub(
        r"<w:instrText>.*?</w:instrText>|<w:delText>.*?</w:delText>|<[^>]*>|\s|7", "", translated
    ) in (
        "DERHUNDSCHLÄFT.",
        "DERHUNDERSCHLÄFT.",
    )
    for tag in re.findall(
        r"<w:(?:footnoteRef|commentRef|drawing|softH|del |fldChar|sdtPr|instr)[^>]*>", within
    ):
        assert translated.count(tag) == within.count(tag)
    assert len([text for message in server.servicer.messages for text in message if text]) == 1


def test_a_name_that_a_document_holds_twice_is_refused_without_a_word_on_stderr(run, tmp_path, capfd):
    file = io.BytesIO(WHOLE)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(BODY, "<a/>")
    (tmp_path / "in.docx").write_bytes(file.getvalue())
    with pytest.raises(JobError, match=r"it holds 'word/document\.xml' more than once"):
        run(tmp_path / "in.docx", tmp_path / "out.docx")
    assert capfd.readouterr().err == ""
