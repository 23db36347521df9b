"""What reading and writing a document costs: time in proportion to its size, memory up to a stated multiple.

Documents are runs of what a format knows: characters that mean something in it and pairs of them, openers
that nobody closes, nested and empty elements, attributes, items, cells, entries.
"""

import contextlib
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from tests.files.documents import PO_HEAD, docx, epub, input_of, opened, pptx, xliff, xlsx
from tests.growth import assert_linear, memory_below

from dragoman_files import format as format_module
from dragoman_files.format import MEMORY_FLOOR, MEMORY_PER_BYTE, FileError, FormatOptions, UnitError
from dragoman_files.opening import open_format

MAX_CHARACTERS = 1 << 19
NUM_PAIRS = 400
"""Of the 2,422 pairs of characters, those that are tried."""
NUM_EVERY_TIME = 14
"""Of all documents, those that are tried every time."""

Wrap = Callable[[str], bytes]
Make = Callable[[int], bytes]


def _xliff(content: str) -> bytes:
    return xliff(f'<trans-unit id="1"><source>{content}</source></trans-unit>').encode()


def _run(content: str) -> str:
    return f"<w:p><w:r>{content}</w:r></w:p>"


def _plain(content: str) -> bytes:
    return content.encode()


WRAPS: dict[str, list[Wrap]] = {
    "text": [_plain],
    "ftl": [_plain, lambda text: f"a = b {text}\n".encode(), lambda text: f"a =\n  {text}\n".encode()],
    "jsonl": [_plain, lambda text: f'{{"text": "{text}"}}\n'.encode()],
    "json": [_plain, lambda text: f'["{text}"]'.encode()],
    "csv": [_plain, lambda text: f'a,b\nc,"{text}"\n'.encode()],
    "tsv": [_plain],
    "srt": [lambda text: f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n".encode(), _plain],
    "vtt": [lambda text: f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n".encode()],
    "html": [_plain, lambda text: f"<p>a {text} b</p>".encode()],
    "markdown": [
        _plain,
        lambda text: f"a {text} b\n".encode(),
        lambda text: f"|a|\n|-|\n|{text}|\n".encode(),
    ],
    "po": [
        lambda text: f"{PO_HEAD}{text}".encode(),
        lambda text: f'{PO_HEAD}msgid "a {text}"\nmsgstr ""\n'.encode(),
    ],
    "xliff": [_xliff, lambda text: xliff(text).encode()],
    "docx": [lambda text: docx(text), lambda text: docx(_run(text)), lambda text: docx(f"<w:p>{text}</w:p>")],
    "resx": [
        lambda text: f'<root><data name="a"><value>a {text}</value></data></root>'.encode(),
        lambda text: f"<root>{text}</root>".encode(),
    ],
    "android": [
        lambda text: f'<resources><string name="a">a {text}</string></resources>'.encode(),
        lambda text: f"<resources>{text}</resources>".encode(),
    ],
    "ts": [
        lambda text: f'<TS version="2.1"><message><source>a {text}</source></message></TS>'.encode(),
        lambda text: f'<TS version="2.1">{text}</TS>'.encode(),
    ],
    "strings": [_plain, lambda text: f'"a" = "{text}";\n'.encode()],
    "arb": [_plain, lambda text: f'{{"a": "{text}"}}'.encode()],
    "yaml": [_plain, lambda text: f"a: {text}\n".encode(), lambda text: f"a:\n - |\n  {text}\n".encode()],
    "pptx": [pptx, lambda text: pptx(f"<a:p>{text}</a:p>")],
    "xlsx": [xlsx, lambda text: xlsx(cells=f'<row><c t="inlineStr"><is>{text}</is></c></row>')],
    "epub": [lambda text: epub(f"<p>{text}</p>"), lambda text: epub(title=text)],
    "odt": [opened, lambda text: opened(f"<text:p>a {text} b</text:p>")],
}
"""Where a run can stand in a document of each format."""
CHARACTERS = {
    "text": "a -\n",
    "jsonl": '"{}:a\n',
    "json": '"\\[]{}:,a0 \n',
    "csv": '",;a\n',
    "tsv": '"\ta\n',
    "srt": "->{}\\:a \n",
    "vtt": "-><&;a \n",
    "html": "<>&\"'=/!-#;a \n",
    "markdown": "`*_[]()!<&\\|~#->:a \n",
    "po": '"\\#~|[a \n',
    "strings": '"\\/*=;a \n',
    "android": "\"'\\@na;& \n",
    "arb": '"\\{}:,a',
    "ftl": '{}[]*.=-$>"# a\n',
    "yaml": "[]{}:,-#&*!|>'\"%@`?a \n",
}
"""The characters of each format that mean something; each is tried, and each pair."""
UNITS = {
    "text": ["a\n\n", "é", "- a\n"],
    "jsonl": ['{"text": "a"}\n', '{"text": "a", "b": [1]}\n', "[" * 100 + "\n"],
    "json": ['"a",', '"a":', '{"a": "b"},', '{"":0},', "[],", "\\u0061", '\\"', "9"],
    "csv": ["a,b\n", "1,2\n", '"a\n",b\n', "a,", "\n", "a\n"],
    "tsv": ["a\tb\n", "1\t2\n", "a\t"],
    "srt": [
        "1\n00:00:01,000 --> 00:00:02,000\na\n\n", "<i>", "<i>a</i>", "{\\i1}", "a\n\n", "-->", "<", "a<b ",
        "[a] ", "A: (b)\n", "2\n00:00:01,000 --> 00:00:02,000\na,\n\n", "a, ", "<v a>",
    ],
    "vtt": ["\n00:01.000 --> 00:02.000\na\n", "NOTE\n\n", "<c>a", "&amp;", "&#9", "<v a>b</v>", "a<"],
    "html": [
        "<p>a", "<p>", "<b>", "<b>a", "<b>a</b>", "</b>", "<b><i></b></i>", "<br>", "a<br>", "<a", "<a ",
        "</", "<a href=", "<a b='", '<a b="">', "<!--", "<!-- -->", "<!", "<![CDATA[", "<?", "<script>",
        "</script", "&amp;", "&#9", "&a", "a&lt;", "<code>x</code>", "a<code>x</code>", "<p translate=no>",
        "<li>a", "<div>", "<td>a", "<option>a", "<h1>a</h1>", "<textarea>", "</>", "<b translate=no>a</b>",
        "<p>a<b>", "<img alt=a>", "<style>", "<a b>", "--", "->", "<p class=notranslate>a</p>", "&nbsp;",
        "é<b>", '<b title="a">', ' title="a"', '<b title="a">b</b>', "<textarea>a\n", "<svg><text>a</text>",
        "<img alt=a title=b>",
    ],
    "markdown": [
        "` ", "_a", "![](", "](", "[a]: b\n", '[a]: b "\n', "[a](b)", "[a](<", "![a][b]", "[a][b] ", "*a ",
        "**a", "~~a", "***a**", "- a\n", "- ", "> ", "> a\n", "1. a\n", "# a\n", "|a", "|a|b|\n", "a\n\n",
        "a\n", "a  \n", "<b>", "<b>a</b>", "<!--", "<div>\n", "<http://a>", "&amp;", "\\*", "\\\n", "[^1]",
        "```\n", "    a\n", "---\n", "a\n=\n", "[[a]]", "`a` ", "<a ", "* * *\n", "![a](b) ", "[a\n", "{#a}",
        "[ ] a\n", "a|b\n", ":::a\n", "> [!a]\n", '[a](b "c") ', '!!! a "b"\n', "|a\\|b", '[a](b "',
    ],
    "po": [
        'msgid "a"\nmsgstr ""\n\n', 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n\n', '"a\\n"\n',
        "# a\n", "#. a\n", "#: a:1\n", "#, fuzzy\n", '#| msgid "a"\n', '#~ msgid "a"\n', "\\n", '\\"',
        'msgctxt "a"\n', 'msgstr ""\n', 'msgid ""\n', 'msgstr[0] ""\n', "a ",
    ],
    "ftl": [
        "a = b\n", "a\n", " a\n", "a =\n a\n", " .a = b\n", "{ $a }", "{", "}", "{ $a ->\n *[a] b\n }",
        "# a\n", '{ "a" }', "{ $a ->\n", " [a] b\n", "\n\n ", "-a = b\n",
    ],
    "xliff": [
        '<trans-unit id="1"><source>a</source></trans-unit>\n',
        '<trans-unit id="1"><source>a</source><target state="new"/></trans-unit>  ', "a<g>b</g>", "<g>a</g>",
        '<x id="1"/>', "<bpt>a</bpt>", "<bx/>", "<!-- -->a", "<![CDATA[a]]>", "&amp;",
        '<mrk mtype="seg" mid="1">a</mrk>', "a\n", "&#10;", "<ph>a</ph>b", "<ept/>", "<group/>", "é<g/>",
    ],
    "docx": [
        "<a/>", "<w:p/>", "<w:p><w:r><w:t>a</w:t></w:r></w:p>", "<w:r><w:t>a</w:t></w:r>", "<w:t>a</w:t>",
        "<w:br/>", "<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t></w:r><w:r><w:t>b</w:t></w:r>",
        "<w:rPr><w:b/></w:rPr><w:t>a</w:t>", '<w:hyperlink r="a"><w:r><w:t>a</w:t></w:r></w:hyperlink>',
        "<w:r><w:t>a</w:t></w:r><w:r><w:footnoteReference/></w:r>",
        "<w:r><w:t>a</w:t></w:r><w:r><w:drawing/></w:r>",
        "<w:del><w:r><w:delText>a</w:delText></w:r></w:del><w:r><w:t>a</w:t></w:r>",
        "<w:bookmarkStart/><w:t>a</w:t><w:bookmarkEnd/>",
        "<w:sdt><w:sdtContent><w:r><w:t>a</w:t></w:r></w:sdtContent></w:sdt>",
        '<w:t a="1">a</w:t><w:t a="2">a</w:t>', "&amp;", "<!-- -->", "<w:softHyphen/><w:t>a</w:t>",
        '<w:fldChar w:fldCharType="begin"/>', "<w:instrText>a</w:instrText>", "<w:tab/><w:t>é</w:t>",
    ],
    "resx": [
        '<data name="a"><value>a</value></data>', '<data name="a" type="b"><value>a</value></data>', "a\n",
        "&amp;", "<data/>", "<value>a</value>",
    ],
    "ts": [
        "<message><source>a</source><translation/></message>", "<context/>", "<source/>", "a\n",
        "<message><source>a</source><translation><numerusform/></translation></message>",
        "<translation><numerusform/></translation>", "<message/>",
    ],
    "android": ["<string>a</string>", "<item>@a</item>", "<b>a</b>", "\\n", "\\u0020", "a\n", "<g>a</g>"],
    "strings": ['"a" = "b";\n', "/* a */", "// a\n", "/*", "/* ", 'a=', "\\U0061", '"a" = '],
    "arb": ['"a": "b",', '"@@locale": "a",', '"@@locale" ', "{a, ", "[", '{"a": "b"},'],
    "yaml": [
        "a: b\n", "- a\n", "- |\n  a\n", "- 'a'\n", '- "a"\n', "a\n", "\n", "# a\n", "&a ", "!a ", "- &a b\n",
        "- *a\n", "? a\n", "--- a\n", "[a], ", "{a: b}, ", "a, ", "''", '\\"', "  a\n", "é ", "- >-\n  a\n\n",
    ],
    "pptx": [
        "<a:p><a:r><a:t>a</a:t></a:r></a:p>", '<a:r><a:rPr b="1"/><a:t>a</a:t></a:r><a:r><a:t>b</a:t></a:r>',
        "<a:br/>", "<a:fld><a:t>1</a:t></a:fld><a:r><a:t>a</a:t></a:r>", "<a:r><a:t>a\n</a:t></a:r>",
    ],
    "xlsx": [
        "<r><t>a</t></r>", "<r><rPr><b/></rPr><t>a</t></r><r><t>b</t></r>", "<t>a\n</t>", "<r><t>a\n</t></r>",
        "<t>a</t><rPh><t>b</t></rPh>", "</si><si><t>a</t>", "<is/>",
    ],
    "epub": ["<p>a</p>", '<b lang="de">a</b>', " lang", "<p lang='", "</dc:title><dc:title>a", "<a xml:lang"],
    "odt": [
        "<text:p>a</text:p>", "<text:span>a</text:span>b", "<text:s/>a", "<text:s/>",
        "<text:note><text:p>a</text:p></text:note>",
        "<text:tab/>", "<text:date>a</text:date>b", "a\n", "&amp;", "<!-- -->a", "<text:span>a</text:span>",
        "<office:annotation><text:p>a</text:p></office:annotation>", "<![CDATA[a]]>",
    ],
}  # fmt: skip
NESTED = {
    "html": [
        ("<div>", "</div>"), ("<b>a", "</b>"), ("<p translate=no>", ""), ("<b>a<i>", "</i></b>"),
        ("<ul><li>a", ""),
    ],
    "markdown": [
        ("[", "]"), ("*", "*"), ("![", "](b)"), ("`", "`"), ("(", ")"), ("> ", ""), ("<b>a", "</b>"),
        ("**a", "**"),
    ],
    "json": [("[", "]"), ('{"a":', "}")],
    "xliff": [
        ("<g>a", "</g>"), ("<ph>", "</ph>"), ("<group>", "</group>"),
        ('<mrk mtype="seg" mid="1">a', "</mrk>"),
    ],
    "docx": [
        ("<w:r><w:t>a</w:t>", "</w:r>"), ("<w:p>", "</w:p>"), ("<w:rPr>", "</w:rPr>"), ("<w:x>", "</w:x>"),
        ("<w:ins><w:r><w:t>a</w:t></w:r>", "</w:ins>"), ("<w:p><w:r><w:t>a</w:t></w:r>", "</w:p>"),
        ("<w:sdt><w:r><w:t>a</w:t></w:r>", "</w:sdt>"), ("<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t>", "</w:r>"),
    ],
    "yaml": [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")],
    "ts": [("<message>", "</message>"), ("<translation>", "</translation>"), ("<b>a", "</b>")],
    "odt": [
        ("<text:p>a", "</text:p>"), ("<text:span>a", "</text:span>"), ("<text:date>a", "</text:date>"),
        ("<text:note>a<text:p>b", "</text:p></text:note>"),
        ("<text:tracked-changes>", "</text:tracked-changes>"),
    ],
}  # fmt: skip
"""What opens and what closes an element of elements."""
SIZED: dict[str, Make] = {
    "html: attributes": lambda n: b"<p><a " + b"a " * n + b">b</a>",
    "xliff: attributes": lambda n: _xliff(f"<g {' '.join(f'a{i}=' + chr(34) * 2 for i in range(n))}>a</g>"),
    "docx: attributes": lambda n: docx(
        f"<w:p {' '.join(f'a{i}=' + chr(34) * 2 for i in range(n))}><w:r><w:t>a</w:t></w:r></w:p>"
    ),
    "docx: look": lambda n: docx(_run(f"<w:rPr>{'<w:b/>' * n}</w:rPr>" + "<w:t>a</w:t>" * n)),
    "docx: runs": lambda n: docx(
        f"<w:p>{'<w:r><w:t>a</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r>' * n}<w:br/></w:p>"
    ),
    "html: value": lambda n: b'<a href="' + b"x" * n + b'">a</a>',
    "csv: wide": lambda n: (b"1," * n + b"a\n") * 2,
    "markdown: table": lambda n: ("|a" * n + "\n" + "|-" * n + "\n" + "|b" * n + "\n").encode(),
    "html: pieces": lambda n: b"<p>" + b"a<b>b</b>&amp;" * n + b"</p>",
}
"""Documents with as many attributes, cells, runs or properties."""


def repeated(units: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, Make]]:
    """Each unit of a format over and over, wherever it can stand: its name, and its maker by characters."""
    for name, own in units.items():
        for unit, (place, wrap) in itertools.product(own, enumerate(WRAPS[name])):
            key = f"{name}: {unit!r} in {place}"
            yield key, lambda size, unit=unit, wrap=wrap: wrap(unit * (size // len(unit)))


def nested() -> Iterator[tuple[str, Make]]:
    for name, nests in NESTED.items():
        for (begin, end), (place, wrap) in itertools.product(nests, enumerate(WRAPS[name])):

            def make(size: int, begin=begin, end=end, wrap=wrap) -> bytes:
                depth = size // len(begin + end)
                return wrap(begin * depth + "a" + end * depth)

            yield f"{name}: {begin!r} nested in {place}", make


PAIRS = repeated({name: map("".join, itertools.product(own, repeat=2)) for name, own in CHARACTERS.items()})
ALL = {
    **dict(repeated({name: [*CHARACTERS.get(name, ""), *own] for name, own in UNITS.items()})),
    **dict(nested()),
    **SIZED,
    **dict(random.Random(7).sample([*PAIRS], NUM_PAIRS)),
}
DRAWN = random.Random(49).sample(sorted(ALL), NUM_EVERY_TIME)


def read_and_write(name: str, content: bytes) -> None:
    """Reads a document and writes a translation of each text, if it is not refused."""
    options = FormatOptions(columns=("1",) if name in ("csv", "tsv") else (), join_lines=True)
    with contextlib.suppress(FileError):
        for unit in open_format(name, options).units(input_of(content)):
            try:
                unit.write(unit.text + "b", {})
            except UnitError:
                unit.write(None, {})


def check_growth(key: str) -> None:
    name = key.partition(":")[0]
    assert_linear(lambda size: read_and_write(name, ALL[key](size)), 2_000, MAX_CHARACTERS)


LARGE: dict[str, tuple[Make, int]] = {
    "html": (lambda n: b"<p>a" * n, 400_000),
    "html attributes": (lambda n: b"<a " + b"a " * n + b">b</a>", 700_000),
    "markdown": (lambda n: b"- a\n" * n, 200_000),
    "json": (lambda n: b'["a"' + b',"a"' * n + b"]", 300_000),
    "docx": (lambda n: docx(f"<w:p>{'<a/>' * n}</w:p>"), 1_000_000),
    "docx text": (lambda n: docx(f"<w:p>{'<w:r><w:t>a</w:t></w:r><w:br/>' * n}</w:p>"), 150_000),
}
"""Documents that hold much for their size."""


@pytest.mark.parametrize(("key", "share"), [("html", 16), ("docx", 8)])
def test_memory_is_bounded_by_the_size_of_a_document(key, share, monkeypatch):
    """A share of a large document, with as small a share of what any document may take."""
    monkeypatch.setattr(format_module, "MEMORY_FLOOR", MEMORY_FLOOR // share)
    check_memory(key, share)


@pytest.mark.long
@pytest.mark.parametrize("key", LARGE)
def test_memory_is_bounded_by_the_size_of_any_document(key):
    check_memory(key, 1)


def check_memory(key: str, share: int) -> None:
    make, count = LARGE[key]
    # What the first document of a format imports is no matter of its size.
    read_and_write(key.split()[0], make(1))
    content = make(count // share)
    with memory_below(MEMORY_FLOOR // share + MEMORY_PER_BYTE * len(content)):
        read_and_write(key.split()[0], content)


def test_reading_ends_once_nobody_wants_it():
    class UnwantedError(Exception):
        pass

    def check() -> None:
        raise UnwantedError

    for name, content in (("html", b"<p>a" * 400_000), ("docx", docx(_run("<w:t>a</w:t>")))):
        with pytest.raises(UnwantedError):
            list(open_format(name, FormatOptions()).units(input_of(content, check)))


@pytest.mark.parametrize("key", DRAWN)
def test_time_grows_with_the_size_of_a_sample_of_documents(key):
    check_growth(key)


@pytest.mark.long
@pytest.mark.parametrize("key", ALL)
def test_time_grows_with_the_size_of_any_document(key):
    check_growth(key)
