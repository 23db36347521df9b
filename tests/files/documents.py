"""Files to translate, made here."""

import io
import zipfile

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def paragraph(*runs: str) -> str:
    """A paragraph of runs, each a text or XML."""
    return f"<w:p>{''.join(run if run.startswith('<') else text_run(run) for run in runs)}</w:p>"


def text_run(text: str, properties: str = "") -> str:
    """A run of one text, as Word writes it."""
    look = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r w:rsidR="00A1">{look}<w:t xml:space="preserve">{text}</w:t></w:r>'


def part(root: str, body: str) -> str:
    """A part of a document."""
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'
    return f'{head}<w:{root} xmlns:w="{NAMESPACE}">{body}</w:{root}>'


def docx(body: str, *, header: str | None = None, footnotes: str | None = None) -> bytes:
    """A document of Word with this body, a picture and properties."""
    parts = {"word/document.xml": part("document", f"<w:body>{body}</w:body>")}
    kinds = {"word/document.xml": "document.main"}
    if header is not None:
        parts["word/header1.xml"] = part("hdr", header)
        kinds["word/header1.xml"] = "header"
    if footnotes is not None:
        parts["word/footnotes.xml"] = part("footnotes", footnotes)
        kinds["word/footnotes.xml"] = "footnotes"
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{_TYPE}.{kind}+xml"/>' for name, kind in kinds.items()
    )
    types = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>'
    )
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rId1" Target="word/document.xml" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/officeDocument"/></Relationships>'
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("_rels/.rels", relations)
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6)), content)
        archive.writestr("word/media/image1.png", bytes(range(256)), zipfile.ZIP_STORED)
        archive.writestr("docProps/core.xml", "<title>Titel</title>")
    return file.getvalue()


def read_part(content: bytes, name: str = "word/document.xml") -> str:
    """A part of a document, as it is."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(name).decode()


XLIFF_HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">\n'
    '<file source-language="de" target-language="en" datatype="plaintext" original="a"><body>\n'
)
XLIFF_TAIL = "</body></file>\n</xliff>\n"


def xliff(units: str) -> str:
    """A file of XLIFF 1.2 with these units."""
    return f"{XLIFF_HEAD}{units}{XLIFF_TAIL}"


PO_HEAD = (
    'msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)


def many(num_texts: int, name: str) -> bytes:
    """A file of so many texts, "zeile 0" and on, of the format of this suffix."""
    texts = [f"zeile {number}" for number in range(num_texts)]
    match name:
        case "txt":
            content = "".join(f"{text}\n" for text in texts)
        case "jsonl":
            content = "".join(f'{{"text": "{text}"}}\n' for text in texts)
        case "json":
            content = "{" + ",\n".join(f'"k{text}": ["{text}"]' for text in texts) + "}\n"
        case "csv":
            content = "id,titel\r\n" + "".join(f'{number},"{text}"\r\n' for number, text in enumerate(texts))
        case "tsv":
            content = "id\ttitel\n" + "".join(f"{number}\t{text}\n" for number, text in enumerate(texts))
        case "srt":
            content = "".join(
                f"{number}\n00:00:01,000 --> 00:00:02,000\n{text}\n\n" for number, text in enumerate(texts)
            )
        case "vtt":
            content = "WEBVTT\n\n" + "".join(
                f"00:00:01.000 --> 00:00:02.000 align:start\n{text}\n\n" for text in texts
            )
        case "html":
            content = "<!DOCTYPE html>\n" + "".join(f"<p class='a'>{text}</p>\n" for text in texts)
        case "md":
            content = "".join(f"- {text}\n" for text in texts)
        case "po":
            content = PO_HEAD + "".join(f'msgid "{text}"\nmsgstr ""\n\n' for text in texts)
        case "xliff":
            content = xliff(
                "".join(f'<trans-unit id="{text}"><source>{text}</source></trans-unit>\n' for text in texts)
            )
        case "docx":
            return docx("".join(map(paragraph, texts)), header=paragraph("kopf"))
        case _:
            raise AssertionError(name)
    return content.encode()


FORMATS = ("txt", "jsonl", "json", "csv", "tsv", "srt", "vtt", "html", "md", "po", "xliff", "docx")
