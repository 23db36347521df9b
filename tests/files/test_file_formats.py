"""Which files a job takes line by line, and which it refuses before it writes anything."""

import ast
import gzip
import json
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from tests.files.documents import package

from dragoman.jobs import JobError


@pytest.mark.parametrize(
    ("name", "output"),
    [
        *((f"in{ending}", f"out{ending}") for ending in (".ndjson", ".JSONL", ".NDJson.GZ", ".jsonlines")),
        ("in.TXT.GZ", "out.Gz"),
    ],
)
def test_json_lines_and_compression_are_known_by_their_name_in_any_case(run, tmp_path, name, output):
    is_packed, is_text = name.endswith("GZ"), "TXT" in name
    content = b"ja\n" if is_text else b'{"text": "ja"}\n'
    (tmp_path / name).write_bytes(gzip.compress(content) if is_packed else content)
    run(tmp_path / name, tmp_path / output)
    told = (tmp_path / output).read_bytes()
    told = gzip.decompress(told) if is_packed else told
    assert told == b"JA\n" if is_text else json.loads(told) == {"text": "ja", "translation": "JA"}


@pytest.mark.parametrize("name", ["book.de", "book", "book.TXT", "v1.2 (final).de_DE", "po", ".srt"])
def test_a_name_that_says_nothing_is_of_text(run, tmp_path, name):
    (tmp_path / name).write_text("ja\n")
    run(tmp_path / name, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "JA\n"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.ott", r"a document.*save it as \.docx or \.odt, or as plain text in UTF-8"),
        ("a.PDF", r"a document.*plain text in UTF-8"),
        ("a.zip", r"an archive.*unpack"),
        ("a.txt.xz", r"an archive.*only \.gz is read"),
        ("a.ass", r"subtitles.*\.srt or \.vtt"),
        ("a.rst", r"markup.*JSON lines"),
        ("a.mdx", r"markup"),
        ("layout.xml", r"markup"),
        ("a.ots.gz", r"a document"),
        *((f"a.{suffix}", r"a catalogue.*\.po or \.xliff") for suffix in ("xcstrings", "properties")),
        ("a.toml", r"structured data.*\.json"),
    ],
)
def test_a_name_of_what_lines_would_break_is_refused(refuse, name, told):
    refuse(name, "ja\n", rf"{name} is by its name {told}.*`--format text`", "out")


@pytest.mark.parametrize(
    "suffix", [*("js", "php", "py", "vue", "jsonc", "sub", "eml", "ics", "sql", "tsx", "foo", "jsonl5")]
)
def test_a_name_of_which_nothing_is_known_is_refused_unless_one_insists(run, refuse, tmp_path, suffix):
    name = f"de.{suffix}"
    refuse(name, "ja\n", rf"{name} ends in '\.\w+', of which no format is known.*`--format text`", "out")
    run(tmp_path / name, tmp_path / "out", format_name="text")
    assert (tmp_path / "out").read_text() == "JA\n"


def test_a_name_that_the_output_would_belie_is_refused(refuse):
    refuse("in", "ja\n", r"out\.ott is by its name a document.*such as out\.txt", "out.ott")


@pytest.mark.parametrize(
    ("name", "format_name", "content", "told"),
    [
        ("in.md", "text", "# ja\n", "# JA\n"),
        ("in.json", "jsonl", '{"text": "ja"}\n', '{"text": "ja", "translation": "JA"}\n'),
    ],
)
def test_whoever_insists_has_a_format_that_the_name_hides(run, tmp_path, name, format_name, content, told):
    (tmp_path / name).write_text(content)
    run(tmp_path / name, tmp_path / "out", format_name=format_name)
    assert (tmp_path / "out").read_text() == told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (package({"word/document.xml": "<w:t>Ja.</w:t>"}), r"a zip file, as \.docx.*`--format docx`"),
        (b"%PDF-1.7\n", "a PDF"),
        ("Grüße\n".encode("utf-16"), r"text in UTF-16.*`iconv -f UTF-16 -t UTF-8 .*in\.txt"),
        ("Grüße\n".encode("utf-32"), r"text in UTF-32"),
        ("Guten Morgen. Grüße\n".encode("utf-16-le"), r"text in UTF-16LE.*`iconv -f UTF-16LE"),
        ("Guten Morgen. Grüße\n".encode("utf-16-be"), r"text in UTF-16BE"),
        ("Guten Morgen. Grüße\n".encode("utf-32-le"), r"text in UTF-32LE"),
        ("Guten Morgen. Grüße\n".encode("utf-32-be"), r"text in UTF-32BE"),
    ],
    ids=["zip", "pdf", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"],
)
def test_what_is_no_text_in_utf8_is_refused_whatever_it_is_called(run, tmp_path, content, told):
    (tmp_path / "in.txt").write_bytes(content)
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(content))
    for name in ("in.txt", "in.txt.gz"):
        for format_name in (None, "text"):
            with pytest.raises(JobError, match=told):
                run(tmp_path / name, tmp_path / "out.txt", format_name=format_name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "in.txt.gz"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"ja\x00\nnein\n", "byte 2 is NUL"),
        ("ja\nGrüße\n".encode("latin-1"), r"byte 2 of line 2 is 0xfc.*`iconv -f NAME.*in\.txt"),
        ("你好。\n再见。\n".encode("gb2312"), r"byte 0 of line 1 is 0xc4"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n', "XML or HTML"),
        (b"<!DOCTYPE html>\n<p>ja\n", "XML or HTML"),
        (b"WEBVTT\n\n", "subtitles"),
        (b"1\r\n00:00:01,000 --> 00:00:02,000\r\nja\r\n", "subtitles"),
        (b'{"text": "ja"}\n', "JSON"),
        (b'[\n {"text": "ja"}\n]\n', "JSON"),
        (b'{\n  "a": "ja"\n}\n', "JSON"),
    ],
)
def test_text_that_lines_would_break_is_refused_unless_one_insists(run, refuse, tmp_path, content, told):
    refuse("in.txt", content, f"{told}.*--format")
    summary = run(tmp_path / "in.txt", tmp_path / "out.txt", format_name="text")
    assert summary.lines == content.count(b"\n")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Sehr geehrte Damen und Herren, die Prüfung läuft.", "cp1252"),
        ("Le café est très près de la forêt où il a été.", "cp1252"),
        ("Zażółć gęślą jaźń. Proszę o rachunek.", "cp1250"),
        ("Доброе утро. Я хотел бы купить билет.", "cp1251"),
        ("Доброе утро. Я хотел бы купить билет.", "koi8_r"),
        ("おはようございます。駅はどこですか。", "cp932"),
        ("早上好。火车站在哪里？我想买一张票。", "gb18030"),
    ],
)
@pytest.mark.parametrize("name", ["in.txt", "in.srt"])
def test_a_line_is_shown_as_it_reads_in_encodings_that_it_may_be_in(run, tmp_path, name, text, encoding):
    before = "1\n00:00:01,000 --> 00:00:02,000\n" if name == "in.srt" else "\n"
    (tmp_path / name).write_bytes(f"{before}{text}\n".encode(encoding))
    with pytest.raises(JobError) as refused:
        run(tmp_path / name, tmp_path / f"out-{name}")
    # The codec may be called otherwise where it reads the line alike.
    [shown] = re.findall(rf"in (\w+) '{re.escape(text)}'", str(refused.value))
    assert text.encode(shown) == text.encode(encoding)


@pytest.mark.parametrize(
    "content",
    [
        b'"Ja", sagte er.\n',
        b"[1] Ja.\n",
        b"1\nja\n",
        b"<3 dich\n",
        ("grün\n" * 3).encode() + b"\xff\n",
        # Half of them are in UTF-8: these are what the lines of some crawl are.
        "grün\n".encode() + b"\xff\n",
    ],
)
def test_text_of_any_other_look_is_translated(run, tmp_path, content):
    (tmp_path / "in.txt").write_bytes(content)
    assert run(tmp_path / "in.txt", tmp_path / "out.txt").lines == content.count(b"\n")


def test_a_character_at_the_end_of_what_is_looked_at_is_no_fault(run, tmp_path):
    (tmp_path / "in.txt").write_text("a" + "ü" * (1 << 19) + "\n")
    assert run(tmp_path / "in.txt", tmp_path / "out.txt").failed == 0


def test_a_job_goes_on_in_the_format_that_it_began_with(server, run, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("ja\n" * 300)
    server.servicer.disconnects.append(100)
    with pytest.raises(ConnectionError):
        run(source, output, patience_seconds=0.0, checkpoint_seconds=0.0)
    with pytest.raises(JobError, match="format was text and is jsonl"):
        run(source, output, format_name="jsonl")
    run(source, output)
    assert output.read_text() == "JA\n" * 300


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("in.po", "out.txt"), r"in\.po and .*out\.txt differ in format: .* one holds po, the other text"),
        (("in.json", "out.jsonl"), "one holds json, the other jsonl"),
        (("in", "out.docx"), "one holds text, the other docx"),
        (("in.docx.gz", "out.docx"), r"a \.docx is compressed as it is"),
    ],
    ids=["po", "json", "docx", "gz"],
)
def test_files_of_two_formats_are_refused(refuse, names, told):
    refuse(names[0], "ja\n", told, names[1])


def test_every_format_is_read_by_the_bare_install():
    """In the server's image and after `make demo`, too: what formats import is no matter of an extra."""
    house = Path(__file__).parents[2]
    project = tomllib.loads((house / "pyproject.toml").read_text())["project"]
    installed = {re.match(r"[\w.-]+", each)[0] for each in project["dependencies"]}
    distributions = packages_distributions()
    imported = set()
    for path in (house / "clients/dragoman_files").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {each.name.split(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    needed = {each for name in imported for each in distributions.get(name, ())} - {"dragoman"}
    needed = {name.lower() for name in needed}
    assert {"polib", "markdown-it-py", "pyyaml"} <= needed <= installed


def test_a_document_may_have_as_many_bytes_as_the_limit_and_no_more(run, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman_files.document.MAX_DOCUMENT_BYTES", 1 << 20)
    source, output = tmp_path / "in.html", tmp_path / "out.html"
    text = "<p>ja</p>" + " " * ((1 << 20) - 9)
    source.write_text(text)
    run(source, output)
    assert output.read_text() == text.replace("ja", "JA")
    source.write_text(f"{text} ")
    with pytest.raises(JobError, match=r"in\.html has more than 1 MiB.*split it"):
        run(source, tmp_path / "out2.html")
