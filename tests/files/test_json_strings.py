"""JSON of strings: values are translated, everything else stays to the byte."""

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
