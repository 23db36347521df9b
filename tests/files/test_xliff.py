"""XLIFF: segments are translated one by one, states and languages say what is so."""

from dataclasses import replace

import pytest
from tests.clients.jobs.running import DE_EN, run
from tests.files.documents import xliff

from dragoman import Client
from dragoman.jobs import JobError

SEGMENTED = (
    '<trans-unit id="1"><source>Ja. Nein.</source><seg-source><mrk mtype="seg" mid="1">Ja.</mrk> '
    '<mrk mtype="seg" mid="2">Nein.</mrk></seg-source>{}</trans-unit>'
)


def target(first: str, second: str) -> str:
    return f'<target><mrk mtype="seg" mid="1">{first}</mrk> <mrk mtype="seg" mid="2">{second}</mrk></target>'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('<target><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"/></target>', target("JA.", "NEIN.")),
        ("", target("JA.", "NEIN.")),
        ("<target/>", target("JA.", "NEIN.")),
        (target("", "No way."), target("JA.", "No way.")),
        (target("Yes.", ""), target("Yes.", "NEIN.")),
        (target("Yes.", "No."), target("Yes.", "No.")),
        ("<target>Yes. No.</target>", "<target>Yes. No.</target>"),
    ],
    ids=["empty", "none", "bare", "first", "second", "done", "whole"],
)
def test_a_segmented_unit_is_translated_by_segment(translate, given, expected):
    assert translate("xlf", xliff(SEGMENTED.format(given))) == xliff(SEGMENTED.format(expected))


@pytest.mark.parametrize("state", ["new", "needs-translation"])
def test_a_target_that_is_filled_is_translated(translate, state):
    unit = '<trans-unit id="1"><source>ja</source><target xml:lang="en" state="{}">{}</target></trans-unit>'
    for content in ("", "ja"):
        assert translate("xlf", xliff(unit.format(state, content))) == xliff(unit.format("translated", "JA"))
    final = xliff(unit.format("final", "yes"))
    assert translate("xlf", final) == final


def test_the_target_language_is_the_jobs(server, tmp_path):
    source, output = tmp_path / "in.xlf", tmp_path / "out.xlf"
    unit = '<trans-unit id="1"><source>ja</source></trans-unit>'
    source.write_text(xliff(unit).replace(' target-language="en"', ""))
    with Client(server.address) as client:
        run(client, source, output, replace(DE_EN, target="pt-BR"))
    assert (
        '<file source-language="de" datatype="plaintext" original="a" target-language="pt-BR">'
        in output.read_text()
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (replace(DE_EN, source="fr"), "its source-language is 'de', and --from says 'fr': say --from de"),
        (replace(DE_EN, target="es"), "its target-language is 'en', and --to says 'es': say --to en"),
    ],
    ids=["source", "target"],
)
def test_a_file_in_other_languages_is_refused(server, tmp_path, settings, told):
    (tmp_path / "in.xlf").write_text(xliff('<trans-unit id="1"><source>ja</source></trans-unit>'))
    with Client(server.address) as client, pytest.raises(JobError, match=told):
        run(client, tmp_path / "in.xlf", tmp_path / "out.xlf", settings)
    assert [path.name for path in tmp_path.iterdir()] == ["in.xlf"]
