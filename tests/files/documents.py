"""Files to translate, made here."""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping

from dragoman_files.format import FormatOptions, Input, Unit
from dragoman_files.opening import open_format

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument"


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
    picture = {"word/media/image1.png": bytes(range(256))}
    core = {"docProps/core.xml": "<title>Titel</title>"}
    head = {
        "[Content_Types].xml": office_types("wordprocessingml", kinds),
        "_rels/.rels": relations({"word/document.xml": "officeDocument"}),
    }
    return package({**head, **parts, **picture, **core})


def package(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip, compressed but for bytes, such as pictures, and a mimetype."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            is_stored = isinstance(content, bytes) or name == "mimetype"
            info = zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            archive.writestr(info, content, zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED)
    return file.getvalue()


def office_types(family: str, kinds: Mapping[str, str]) -> str:
    """The list of a document's parts by their types, each without what they all begin with."""
    overrides = (
        f'<Override PartName="/{name}" ContentType="{_TYPE}.{family}.{kind}+xml"/>'
        for name, kind in kinds.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f"{''.join(overrides)}</Types>"
    )


def relations(kinds: Mapping[str, str]) -> str:
    """The parts that a document or a part of it refers to, by their kinds."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(
            f'<Relationship Id="rId{number}" Target="{name}" Type="http://schemas.openxmlformats.org/'
            f'officeDocument/2006/relationships/{kind}"/>'
            for number, (name, kind) in enumerate(kinds.items(), start=1)
        )
        + "</Relationships>"
    )


_PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OF_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def pptx(*paragraphs: str, notes: str = "") -> bytes:
    """A presentation of one slide with paragraphs of DrawingML, and its notes."""

    def sheet(root: str, content: str) -> str:
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<p:{root} xmlns:p="{_PRESENTATION}" '
            f'xmlns:a="{_DRAWING}" xmlns:r="{_OF_OFFICE}">'
            '<p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/>'
            '<p:nvPr/></p:nvGrpSpPr><p:grpSpPr/><p:sp><p:nvSpPr><p:cNvPr id="2" name="Titel 1"/><p:cNvSpPr/>'
            '<p:nvPr/></p:nvSpPr><p:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></a:xfrm>'
            '<a:prstGeom prst="rect"/></p:spPr><p:txBody><a:bodyPr/>'
            f"{content}</p:txBody></p:sp></p:spTree></p:cSld></p:{root}>"
        )

    kinds = {
        "ppt/presentation.xml": "presentation.main",
        "ppt/slides/slide1.xml": "slide",
        "ppt/notesSlides/notesSlide1.xml": "notesSlide",
    }
    return package(
        {
            "[Content_Types].xml": office_types("presentationml", kinds),
            "_rels/.rels": relations({"ppt/presentation.xml": "officeDocument"}),
            "ppt/presentation.xml": f'<p:presentation xmlns:p="{_PRESENTATION}" xmlns:r="{_OF_OFFICE}">'
            '<p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/>'
            '<p:notesSz cx="6858000" cy="9144000"/></p:presentation>',
            "ppt/_rels/presentation.xml.rels": relations({"slides/slide1.xml": "slide"}),
            "ppt/slides/slide1.xml": sheet("sld", "".join(paragraphs)),
            "ppt/slides/_rels/slide1.xml.rels": relations({"../notesSlides/notesSlide1.xml": "notesSlide"}),
            "ppt/notesSlides/notesSlide1.xml": sheet("notes", notes),
            "ppt/media/image1.png": bytes(range(256)),
        }
    )


def drawn(*runs: str) -> str:
    """A paragraph of DrawingML, of runs, each a text or XML."""
    return f"<a:p>{''.join(run if run.startswith('<') else drawn_run(run) for run in runs)}</a:p>"


def drawn_run(text: str, properties: str = "") -> str:
    """A run of DrawingML, as PowerPoint writes it."""
    return f'<a:r><a:rPr lang="de-DE" {properties} dirty="0"/><a:t>{text}</a:t></a:r>'


def xlsx(*strings: str, cells: str = "", table: str = "") -> bytes:
    """A workbook of one sheet, which has these shared strings in its first column, and more cells."""
    kinds = {
        "xl/workbook.xml": "sheet.main",
        "xl/worksheets/sheet1.xml": "worksheet",
        "xl/sharedStrings.xml": "sharedStrings",
        **({"xl/tables/table1.xml": "table"} if table else {}),
    }
    rows = "".join(
        f'<row r="{row}"><c r="A{row}" t="s"><v>{row - 1}</v></c></row>' for row in range(1, len(strings) + 1)
    )
    shared = "".join(f"<si>{each}</si>" for each in strings)
    parts = {
        "[Content_Types].xml": office_types("spreadsheetml", kinds),
        "_rels/.rels": relations({"xl/workbook.xml": "officeDocument"}),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OF_OFFICE}">'
        '<sheets><sheet name="Blatt" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(
            {"worksheets/sheet1.xml": "worksheet", "sharedStrings.xml": "sharedStrings"}
        ),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}{cells}</sheetData>'
        "</worksheet>",
        "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}">{shared}</sst>',
    }
    if table:
        columns = f"<tableColumns>{table}</tableColumns>"
        parts["xl/tables/table1.xml"] = f'<table xmlns="{_SHEET}">{columns}</table>'
    return package(parts)


_OPEN_DOCUMENT = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("manifest", "manifest"), ("svg", "svg-compatible"), ("presentation", "presentation"),
    )
)  # fmt: skip


def opened(body: str, *, header: str = "", kind: str = "text") -> bytes:
    """A document of OpenDocument with this body, a header and a picture."""
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    files = {"/": mimetype, **dict.fromkeys(("content.xml", "styles.xml"), "text/xml")}
    files["Pictures/a.png"] = "image/png"
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{media}"/>'
        for path, media in files.items()
    )
    return package(
        {
            "mimetype": mimetype,
            "content.xml": f'{head}<office:document-content {_OPEN_DOCUMENT} office:version="1.3">'
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
            "Pictures/a.png": bytes(range(256)),
            "styles.xml": f'{head}<office:document-styles {_OPEN_DOCUMENT} office:version="1.3">'
            '<office:automatic-styles><style:page-layout style:name="pm1"><style:header-style/>'
            "</style:page-layout></office:automatic-styles>"
            '<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="pm1">'
            f"<style:header>{header}</style:header>"
            "</style:master-page></office:master-styles></office:document-styles>",
            "META-INF/manifest.xml": f"{head}<manifest:manifest {_OPEN_DOCUMENT}>{entries}"
            "</manifest:manifest>",
        }
    )


XHTML = "http://www.w3.org/1999/xhtml"


def epub(*chapters: str, title: str = "Titel", language: str = "de") -> bytes:
    """A book of these chapters, each what is in its body, with contents in both ways."""
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    names = [f"text/k {number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="k{number}" href="{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for number, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="k{number}"/>' for number in reversed(range(len(chapters))))
    pages = {
        f"OEBPS/{name}": f'{head}<html xmlns="{XHTML}" lang="{language}" xml:lang="{language}">'
        f'<head><title/></head><body id="b">{chapter}</body></html>'
        for name, chapter in zip(names, chapters, strict=True)
    }
    return package(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
            'version="1.0"><rootfiles><rootfile full-path="OEBPS/book.opf" '
            'media-type="application/oebps-package+xml"/></rootfiles></container>',
            **pages,
            "OEBPS/book.opf": f'{head}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" '
            'unique-identifier="i"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f'<dc:identifier id="i">urn:abc</dc:identifier><dc:title>{title}</dc:title>'
            f"<dc:creator>Wer</dc:creator><dc:language>{language}</dc:language></metadata>"
            f'<manifest>{items}<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
            f'<spine toc="n">{spine}</spine></package>',
            "OEBPS/toc.ncx": f'{head}<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1">'
            '<navMap><navPoint id="p"><navLabel><text>eins</text></navLabel>'
            '<content src="text/k%200.xhtml#b"/></navPoint></navMap></ncx>',
        }
    )


def read_part(content: bytes, name: str = "word/document.xml") -> str:
    """A part of a document, as it is."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(name).decode()


def input_of(content: bytes, check: Callable[[], None] = lambda: None) -> Input:
    stream = io.BytesIO(content)
    return Input(name="a", stream=stream, position=stream.tell, check=check)


def units_of(name: str, content: bytes) -> Iterator[Unit]:
    """The texts of a document of this format."""
    return open_format(name, FormatOptions()).units(input_of(content))


def capitals(text: str, *parts: str) -> str:
    """A text with these parts of it in capitals."""
    for part in parts:
        assert part in text
        text = text.replace(part, part.upper())
    return text


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
    """A catalogue of so many texts, "zeile 0" and on, of the format of this suffix."""
    texts = [f"zeile {number}" for number in range(num_texts)]
    if name == "po":
        return (PO_HEAD + "".join(f'msgid "{text}"\nmsgstr ""\n\n' for text in texts)).encode()
    assert name == "xliff", name
    return xliff(
        "".join(f'<trans-unit id="{text}"><source>{text}</source></trans-unit>\n' for text in texts)
    ).encode()
