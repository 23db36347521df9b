"""A corpus cut into parts: together they are the corpus, and each is translated to the same bytes again."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.jobs.errors import JobError
from dragoman.ray.joining import join
from dragoman.ray.part_file import Corpus, check_column, translate_part
from dragoman.ray.parts import cut, kind_of


class Upper:
    """What an engine is to a part, with translations that can be worked out by hand."""

    def translate(self, texts: Sequence[str | None]) -> list[tuple[str | None, bool]]:
        return [(None if text is None else text.upper(), False) for text in texts]


@given(st.lists(st.sampled_from([b"eins", b"", b"zwei\r", b"x" * 50])), st.booleans(), st.integers(1, 7))
def test_parts_are_whole_lines_and_together_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ends: bool, part_texts: int
) -> None:
    path = tmp_path_factory.mktemp("parts") / "in.txt"
    content = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    path.write_bytes(content)
    parts = cut(path, "text", part_texts=part_texts)
    pieces = [content[part.start : part.end] for part in parts]
    assert b"".join(pieces) == content
    assert [part.number for part in parts] == list(range(len(parts)))
    assert [part.first for part in parts] == [1 + number * part_texts for number in range(len(parts))]
    assert all(piece.count(b"\n") == part_texts for piece in pieces[:-1])
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def translated(source: Path, kind: str, part_texts: int) -> tuple[bytes, int]:
    folder = source.parent / "parts"
    folder.mkdir()
    corpus = Corpus(source=source, kind=kind, column="text", folder=folder)
    parts = cut(source, kind, part_texts=part_texts)
    for part in [*parts, *parts[:1]]:
        translate_part(corpus, part, Upper())
    output = source.with_name("out")
    failed = join(corpus, parts, output)
    return output.read_bytes(), failed


def test_lines_come_in_their_order_and_keep_their_ends(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(b"eins\r\n\nzwei\ndrei")
    assert translated(source, "text", 2) == (b"EINS\r\n\nZWEI\nDREI", 0)
    assert not (tmp_path / "out.errors.jsonl").exists()


def test_lines_without_a_text_are_recorded_by_their_number_in_the_corpus(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "eins"}\n{"text": "zwei"}\nnonsense\n{"id": 7, "text": "drei"}\n')
    content, failed = translated(source, "jsonl", 2)
    lines = [json.loads(line) for line in content.splitlines()]
    assert [line["translation"] for line in lines] == ["EINS", "ZWEI", None, "DREI"]
    assert failed == 1
    [record] = (tmp_path / "out.errors.jsonl").read_text().splitlines()
    assert json.loads(record)["line"] == 3


def test_a_compressed_corpus_is_refused_with_the_way_out() -> None:
    with pytest.raises(JobError, match="decompress it, or take Parquet"):
        kind_of(Path("corpus.de.gz"), None)
    assert [kind_of(Path(name), None) for name in ("a.de", "a.JSONL", "a.parquet")] == [
        "text",
        "jsonl",
        "parquet",
    ]


def test_rows_of_parquet_come_in_their_order_with_all_their_columns(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra dragoman[ray]")
    parquet = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "in.parquet"
    texts = ["eins", None, "", "vier", "fünf", "sechs", "sieben"]
    table = pyarrow.table({"n": list(range(7)), "text": texts})
    # Parts and the file's own groups of rows need not end together.
    parquet.write_table(table, source, row_group_size=3)
    _, failed = translated(source, "parquet", 2)
    written = parquet.read_table(tmp_path / "out")
    assert failed == 0
    assert written.drop_columns("translation").equals(table)
    assert written.column("translation").to_pylist() == [
        None if text is None else text.upper() for text in texts
    ]


def test_a_column_that_is_not_there_or_holds_no_strings_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra dragoman[ray]")
    parquet = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "in.parquet"
    parquet.write_table(pyarrow.table({"n": [1], "text": ["eins"]}), source)
    check_column(source, "text")
    with pytest.raises(JobError, match="no column 'words'; --column names one of n, text"):
        check_column(source, "words")
    with pytest.raises(JobError, match="of int64, not of strings"):
        check_column(source, "n")
    parquet.write_table(pyarrow.table({"text": ["eins"], "translation": ["one"]}), source)
    with pytest.raises(JobError, match="has a column 'translation' already"):
        check_column(source, "text")
