"""Documents of Word that are none, or damaged."""

import io
import zipfile

import pytest
from tests.clients.formats.documents import docx, paragraph

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
    "no body": (zipped(types=TYPES), "none of its parts is the text of a document"),
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
