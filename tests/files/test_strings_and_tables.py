"""JSON of strings, CSV and TSV: values and cells are translated, every other byte stays."""

import json

import pytest
import yaml
from tests.files.documents import capitals

from dragoman.jobs import JobError


def test_strings_are_translated_wherever_they_stand_and_the_rest_stays(translate):
    given = (
        '{\r\n\t"titel" : "guten morgen",\n  "n": 1.50e3, "leer": "", "zahl": "2.500",\n'
        '  "tief": {"liste": ["eins", ["zwei"], null, true], "b": {"c":"drei"}} ,\n'
        '  "flucht": "a\\"b\\n{name}"\n}\n'
    )
    expected = capitals(given, "guten morgen", "eins", "zwei", "drei", "{name}")
    assert translate("json", given) == expected.replace('a\\"b', 'A\\"B')


@pytest.mark.parametrize(
    ("given", "keys", "expected"),
    [
        # What was written in ASCII stays so.
        ('["gr\\u00fcn", "grün"]', (), '["GR\\u00dcN", "GRÜN"]'),
        (' "ja"\n', (), ' "JA"\n'),
        ('["a", {"b": "c"}]', (), '["A", {"b": "C"}]'),
        (f'[{"9" * 5000}, "ja"]', (), f'[{"9" * 5000}, "JA"]'),
        # Only the strings of keys that are named; an object within an array has keys of its own.
        ('{"text": "ja", "id": "abc"}', ("text",), '{"text": "JA", "id": "abc"}'),
        ('{"mehr": {"text": ["x", "y"], "id": "z"}}', ("text",), '{"mehr": {"text": ["X", "Y"], "id": "z"}}'),
        ('{"text": [{"id": "a", "text": "b"}, "c"]}', ("text",), '{"text": [{"id": "a", "text": "B"}, "C"]}'),
    ],
    ids=["ascii", "bare", "array", "digits", "key", "deep", "nested"],
)
def test_values_of_json_are_translated(translate, given, keys, expected):
    assert translate("json", given, keys=keys) == expected


@pytest.mark.parametrize("name", ["json", "yaml"])
def test_what_looks_like_a_name_is_none(translate, name):
    """By its key and itself, or by itself alone, unless its key is named."""
    kept = """{"id": "btn-save", "class": "btn btn-primary", "className": "is-active", "lang": "de",
    "dateFormat": "DD.MM.YYYY", "short": "YYYY-MM-DD", "time": "HH:mm", "type": "submit", "color": "red",
    "nameKey": "saveButton", "see": "app.title.main", "other": "user_name"}"""
    translated = """{"title": "id", "id2": "ein haus", "type": "Schaltfläche", "format": "Das Format",
    "idea": "e-mail", "x": "state-of-the-art", "y": "ham", "z": "Mm"}"""
    upper = {key: text.upper() for key, text in json.loads(translated).items()}
    for given, expected in ((kept, json.loads(kept)), (translated, upper)):
        assert yaml.safe_load(translate(name, given)) == expected
    assert translate(name, '{"id": "abc"}', keys=("id",)) == '{"id": "ABC"}'


def test_a_string_that_fails_stays_and_is_recorded(run, tmp_path):
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text('{"a": "ja",\n"b": "!INTERNAL x", "c": "\\ud800 y"}')
    summary = run(source, output)
    assert output.read_text() == '{"a": "JA",\n"b": "!INTERNAL x", "c": "\\ud800 y"}'
    assert (summary.lines, summary.failed) == (2, 1)
    told = {"status": "INTERNAL", "message": "scripted INTERNAL", "text": "!INTERNAL x"}
    assert json.loads(summary.errors.read_text()) == {"number": 2, "line": 2, **told}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"a": "b"', r"in\.json: no JSON: .*line 1, column 10.*`--format jsonl`"),
        ('{"text": "a"}\n{"text": "b"}\n', "no JSON: Extra data at line 2, column 1"),
        ("", "no JSON"),
        ("[" * 100_000, "nested too deep"),
    ],
    ids=["truncated", "lines", "empty", "nested"],
)
def test_what_is_no_json_is_refused(refuse, content, told):
    refuse("in.json", content, told)


def test_json_lines_have_their_text_under_any_key(translate):
    given = '{"text": "a", "body": "ja"}\n'
    assert translate("jsonl", given, keys=("body",)) == '{"text": "a", "body": "ja", "translation": "JA"}\n'
    with pytest.raises(JobError, match="under one key"):
        translate("jsonl", given, keys=("translation",))
    with pytest.raises(JobError, match="under one key"):
        translate("jsonl", given, keys=("text", "body"))


@pytest.mark.parametrize(
    ("given", "columns", "expected"),
    [
        (
            'id,titel,"zahl"\r\n1,ja,"2,5"\r\n\r\n2,"a ""b"", c\nd",x\r\n3,,\r\n4,123,y',
            ("titel",),
            'id,titel,"zahl"\r\n1,JA,"2,5"\r\n\r\n2,"A ""B"", C\nD",x\r\n3,,\r\n4,123,y',
        ),
        # By its number, from the first row on; several in any order.
        ("a,b\nc,d\n", ("2",), "a,B\nc,D\n"),
        ("x,y,z\na,b,c\n", ("z", "x"), "x,y,z\nA,b,C\n"),
        # A translation that needs quotation marks has them.
        ("a;b\nx;eins, zwei\n", ("b",), "a;b\nx;EINS, ZWEI\n"),
        ('a,b\nx,"eins, ""zwei"""\n', ("b",), 'a,b\nx,"EINS, ""ZWEI"""\n'),
        # Excel's mark of byte order; no row at all, and none with a text.
        ("\ufefftitel\nja\n", ("titel",), "\ufefftitel\nJA\n"),
        ("", ("1",), ""),
        ("a,b\n1,2\n3,4\n", ("b",), "a,b\n1,2\n3,4\n"),
    ],
    ids=["name", "number", "several", "needed", "quoted", "mark", "empty", "numbers"],
)
def test_cells_of_columns_are_translated_and_nothing_else(translate, given, columns, expected):
    assert translate("csv", given, columns=columns) == expected


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
def test_the_delimiter_is_found(translate, delimiter):
    given = f'"id"{delimiter}titel\n1{delimiter}ja\n'
    assert translate("csv", given, columns=("titel",)) == given.replace("ja", "JA")
    assert translate("csv", given, columns=("2",)) == given.replace("ja", "JA").replace("titel", "TITEL")


def test_quotation_marks_of_tsv_are_text_unless_they_enclose_a_cell(translate):
    given = 'id\ttitel\r\n1\t"Ja", sagte er\r\n2\t"er ""da"""\r\n'
    expected = capitals(given, '"Ja", sagte er', '"er ""da"""')
    assert translate("tsv", given, columns=("titel",)) == expected


def test_rows_of_another_width_fail_and_stay(run, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("id,titel\n1,ja, nein\n2,gut\n3\n4,!INTERNAL\n5,da\n")
    summary = run(source, output, columns=("titel",))
    assert output.read_text() == "id,titel\n1,ja, nein\n2,GUT\n3\n4,!INTERNAL\n5,DA\n"
    records = [json.loads(line) for line in summary.errors.read_text().splitlines()]
    assert [record["line"] for record in records] == [2, 4, 5]
    assert records[0]["message"] == "the row has 3 cells, and the first one 2"
    assert records[0]["text"] == "1,ja, nein\n"


@pytest.mark.parametrize(
    ("name", "content", "columns", "told"),
    [
        ("in.csv", "a,b\nc,d\n", (), r"needs --column"),
        ("in.csv", "a,b\nc,d\n", ("x",), r"has no column 'x': its first line is 'a,b'"),
        ("in.csv", "a,b\nc,d\n", ("1" * 5_000,), r"has no column .1{5000}.: its first line is .a,b."),
        ("in.csv", "a,b\nc,d\n", ("3",), r"has 2 columns, and there is no number 3"),
        ("in.csv", 'a,b\n1,ok\nc,"d\n' + "e,f\n" * 50, ("b",), r"no table from line 3 on"),
        ("in.csv", 'a,b\nc,"d" e\n', ("b",), r"no table from line 2 on"),
        ("in.txt", "a,b\n", ("b",), r"--column is of tables"),
    ],
    ids=["none", "unknown", "long", "beyond", "open", "after", "text"],
)
def test_what_is_no_such_table_is_refused(refuse, name, content, columns, told):
    refuse(name, content, told, columns=columns)


def test_many_rows_without_a_text_are_not_held(translate, monkeypatch):
    monkeypatch.setattr("dragoman_files.tables.MAX_BETWEEN_CHARACTERS", 100)
    given = "a,b\n" + "1,2\n" * 500 + "3,ja\n" + "4,5\n" * 10
    assert translate("csv", given, columns=("b",)) == given.replace("ja", "JA")
