"""JSON of strings, CSV and TSV: values and cells are translated, every other byte stays."""

import json

import pytest
import yaml

from dragoman.jobs import JobError


def test_strings_are_translated_wherever_they_stand_and_the_rest_stays(translate):
    given = (
        '{\r\n\t"titel" : "guten morgen",\n  "n": 1.50e3, "leer": "", "zahl": "2.500",\n'
        '  "tief": {"liste": ["eins", ["zwei"], null, true], "b": {"c":"drei"}} ,\n'
        '  "flucht": "a\\"b\\n{name}"\n}\n'
    )
    assert translate("json", given) == (
        '{\r\n\t"titel" : "GUTEN MORGEN",\n  "n": 1.50e3, "leer": "", "zahl": "2.500",\n'
        '  "tief": {"liste": ["EINS", ["ZWEI"], null, true], "b": {"c":"DREI"}} ,\n'
        '  "flucht": "A\\"B\\n{NAME}"\n}\n'
    )


def test_a_string_that_was_written_in_ascii_stays_so(translate):
    assert translate("json", '["gr\\u00fcn", "grün"]') == '["GR\\u00dcN", "GRÜN"]'


def test_a_bare_string_and_an_array_are_json_too(translate):
    assert translate("json", ' "ja"\n') == ' "JA"\n'
    assert translate("json", '["a", {"b": "c"}]') == '["A", {"b": "C"}]'


def test_only_the_strings_of_keys_that_are_named_are_translated(translate):
    given = '{"text": "ja", "id": "abc", "mehr": {"text": ["x", "y"], "id": "z"}}'
    assert translate("json", given, keys=("text",)) == (
        '{"text": "JA", "id": "abc", "mehr": {"text": ["X", "Y"], "id": "z"}}'
    )


@pytest.mark.parametrize("name", ["json", "yaml"])
def test_what_looks_like_a_name_is_none(translate, name):
    """By its key and itself, or by itself alone, unless its key is named."""
    kept = {
        "id": "btn-save",
        "class": "btn btn-primary",
        "className": "is-active",
        "dateFormat": "DD.MM.YYYY",
        "short": "YYYY-MM-DD",
        "time": "HH:mm",
        "type": "submit",
        "nameKey": "saveButton",
        "lang": "de",
        "see": "app.title.main",
        "other": "user_name",
        "color": "red",
    }
    translated = {
        "title": "id",
        "id2": "ein haus",
        "type": "Schaltfläche",
        "format": "Das Format",
        "idea": "e-mail",
        "x": "state-of-the-art",
        "y": "ham",
        "z": "Mm",
    }
    for given, expected in (
        (kept, kept),
        (translated, {key: text.upper() for key, text in translated.items()}),
    ):
        assert yaml.safe_load(translate(name, json.dumps(given, ensure_ascii=False))) == expected
    assert translate(name, '{"id": "abc"}', keys=("id",)) == '{"id": "ABC"}'


def test_an_object_within_an_array_of_a_key_has_keys_of_its_own(translate):
    given = '{"text": [{"id": "a", "text": "b"}, "c"], "id": "d"}'
    assert translate("json", given, keys=("text",)) == '{"text": [{"id": "a", "text": "B"}, "C"], "id": "d"}'


def test_a_string_that_fails_stays_and_is_recorded(run, tmp_path):
    source, output = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text('{"a": "ja",\n"b": "!INTERNAL x", "c": "\\ud800 y"}')
    summary = run(source, output)
    assert output.read_text() == '{"a": "JA",\n"b": "!INTERNAL x", "c": "\\ud800 y"}'
    assert (summary.lines, summary.failed) == (2, 1)
    record = json.loads(summary.errors.read_text())
    assert record == {
        "number": 2,
        "line": 2,
        "status": "INTERNAL",
        "message": "scripted INTERNAL",
        "text": "!INTERNAL x",
    }


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
def test_what_is_no_json_is_refused_before_anything_is_written(run, tmp_path, content, told):
    (tmp_path / "in.json").write_text(content)
    with pytest.raises(JobError, match=told):
        run(tmp_path / "in.json", tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


def test_json_lines_have_their_text_under_any_key(translate):
    given = '{"text": "a", "body": "ja"}\n'
    assert translate("jsonl", given, keys=("body",)) == '{"text": "a", "body": "ja", "translation": "JA"}\n'
    with pytest.raises(JobError, match="under one key"):
        translate("jsonl", given, keys=("translation",))
    with pytest.raises(JobError, match="under one key"):
        translate("jsonl", given, keys=("text", "body"))


def test_numbers_of_any_length_stay(translate):
    assert translate("json", f'[{"9" * 5000}, "ja"]') == f'[{"9" * 5000}, "JA"]'


def test_a_column_by_its_name_and_nothing_else(translate):
    given = 'id,titel,"zahl"\r\n1,ja,"2,5"\r\n\r\n2,"a ""b"", c\nd",x\r\n3,,\r\n4,123,y'
    assert translate("csv", given, columns=("titel",)) == (
        'id,titel,"zahl"\r\n1,JA,"2,5"\r\n\r\n2,"A ""B"", C\nD",x\r\n3,,\r\n4,123,y'
    )


def test_a_column_by_its_number_is_translated_from_the_first_row(translate):
    assert translate("csv", "a,b\nc,d\n", columns=("2",)) == "a,B\nc,D\n"


def test_several_columns_in_any_order(translate):
    assert translate("csv", "x,y,z\na,b,c\n", columns=("z", "x")) == "x,y,z\nA,b,C\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
def test_the_delimiter_is_found(translate, delimiter):
    given = f'"id"{delimiter}titel\n1{delimiter}ja\n'
    assert translate("csv", given, columns=("titel",)) == given.replace("ja", "JA")
    assert translate("csv", given, columns=("2",)) == given.replace("ja", "JA").replace("titel", "TITEL")


def test_a_translation_that_needs_quotation_marks_has_them(server, translate):
    # The server's answer has what the source's cell had not.
    assert translate("csv", "a;b\nx;eins, zwei\n", columns=("b",)) == "a;b\nx;EINS, ZWEI\n"
    given = 'a,b\nx,"eins, ""zwei"""\n'
    assert translate("csv", given, columns=("b",)) == 'a,b\nx,"EINS, ""ZWEI"""\n'


def test_quotation_marks_of_tsv_are_text_unless_they_enclose_a_cell(translate):
    given = 'id\ttitel\r\n1\t"Ja", sagte er\r\n2\t"er ""da"""\r\n'
    assert translate("tsv", given, columns=("titel",)) == (
        'id\ttitel\r\n1\t"JA", SAGTE ER\r\n2\t"ER ""DA"""\r\n'
    )


def test_a_mark_of_byte_order_stays_for_excel(translate):
    given = "\ufefftitel\nja\n".encode()
    assert translate("csv", given, columns=("titel",)) == "\ufefftitel\nJA\n".encode()


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
def test_what_is_no_such_table_is_refused_and_nothing_written(run, tmp_path, name, content, columns, told):
    (tmp_path / name).write_text(content)
    with pytest.raises(JobError, match=told):
        run(tmp_path / name, tmp_path / f"out{name[2:]}", columns=columns)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_table_without_a_row_and_one_of_numbers(translate):
    assert translate("csv", "", columns=("1",)) == ""
    assert translate("csv", "a,b\n1,2\n3,4\n", columns=("b",)) == "a,b\n1,2\n3,4\n"


def test_many_rows_without_a_text_are_not_held(translate, monkeypatch):
    monkeypatch.setattr("dragoman_files.tables.MAX_BETWEEN_CHARACTERS", 100)
    given = "a,b\n" + "1,2\n" * 500 + "3,ja\n" + "4,5\n" * 10
    assert translate("csv", given, columns=("b",)) == given.replace("ja", "JA")
