"""`dragoman evaluate` of a server."""

import gzip
import json
import sys

import pytest

DE_EN = ("--from", "de", "--to", "en")


def evaluate(
    run, tmp_path, *arguments, sources="das ist gut so\nja wohl\n", references="DAS IST GUT SO\nja wohl\n"
):
    (tmp_path / "source").write_text(sources)
    (tmp_path / "reference").write_text(references)
    files = ("--source", str(tmp_path / "source"), "--reference", str(tmp_path / "reference"))
    return run("evaluate", *files, *arguments)


def test_evaluation_scores_by_sacrebleu(run, server, tmp_path):
    kept = tmp_path / "kept"
    result = evaluate(
        run, tmp_path, "--server", server.address, *DE_EN, "--beam", "1", "--json", "--output", str(kept)
    )
    assert result.exit_code == 0, result.stderr
    scores = json.loads(result.stdout)
    assert scores["bleu_lc"] == 100.0
    assert 0 < scores["bleu"] < 100
    assert 0 < scores["chrf"] < 100
    assert "case:mixed" in scores["signature"]
    assert "tok:13a" in scores["signature"]
    assert "case:lc" in scores["bleu_lc_signature"]
    assert scores["sentences"] == 2
    assert scores["seconds"] > 0
    assert kept.read_text() == "DAS IST GUT SO\nJA WOHL\n"
    # A stream takes any number of lines, whatever --max-texts a server has.
    (config,) = server.servicer.configs
    assert config.options.beam_size == 1
    assert (config.options.length_policy, config.segmentation) == (1, 2)


def test_evaluation_hands_on_a_length_penalty_and_says_so(run, server, tmp_path):
    arguments = ("--server", server.address, *DE_EN, "--json")
    told = [evaluate(run, tmp_path, *arguments, *more).stdout for more in ((), ("--length-penalty", "2.5"))]
    default, given = server.servicer.configs
    assert not default.options.HasField("length_penalty")
    assert given.options.length_penalty == 2.5
    assert [", length penalty 2.5" in json.loads(results)["system"] for results in told] == [False, True]
    assert [json.loads(results)["length_penalty"] for results in told] == [None, 2.5]
    # What a server runs it does not tell here.
    unknown = ("checksum", "precision", "shortlist")
    assert [json.loads(told[0])[key] for key in unknown] == [None] * 3
    assert evaluate(run, tmp_path, *arguments, "--length-penalty", "-1").exit_code == 2


def test_evaluation_measures_one_model_of_a_server_and_says_which(run, server, tmp_path):
    # More than one stream takes.
    lines = {"sources": "ja\n" * 600, "references": "JA\n" * 600}
    server.servicer.versions.append("2")
    arguments = ("--server", server.address, *DE_EN, "--json")
    for chosen, version in (((), "2"), (("--model", "de-en/1"), "1")):
        told = json.loads(evaluate(run, tmp_path, *arguments, *chosen, **lines).stdout)
        assert told["bundle"] == f"de-en/{version}"
        assert told["system"] == f"server {server.address}, model de-en/{version}"
    assert [config.model for config in server.servicer.configs] == ["", "de-en/2", "de-en/1", "de-en/1"]


def test_evaluation_prints_a_line_for_each_number_where_nobody_looks(run, server, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    arguments = ("--server", server.address, *DE_EN, "--length-penalty", "2.5")
    told = evaluate(run, tmp_path, *arguments).stdout
    described = f"server {server.address}, model de-en/1, length penalty 2.5"
    assert ["system", described] in [line.rstrip().split(maxsplit=1) for line in told.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give one of --server, --bundle and --checkpoint"),
        (("--server", "localhost:1", "--calibrate"), "--calibrate writes into a --bundle"),
        (("--server", "x", "--bundle", "y"), "give one of"),
        (("--server", "x"), "--from de --to en"),
        (("--server", "x", *DE_EN, "--device", "cuda"), "where the server is started"),
        (("--bundle", "/nowhere"), "/nowhere"),
        (("--bundle", "/nowhere", "--model", "de-en"), "--model chooses among those of --server"),
    ],
)
def test_evaluation_of_nothing_sensible_is_refused(run, tmp_path, arguments, told):
    result = evaluate(run, tmp_path, *arguments)
    assert result.exit_code in (1, 2)
    assert told in result.stderr


@pytest.mark.parametrize(
    ("sources", "told"), [("a\n!INTERNAL b\n", "scripted INTERNAL"), ("a\nb\nc", "has 3 lines and")]
)
def test_evaluation_of_a_line_that_fails_or_lacks_its_other_says_why(run, server, tmp_path, sources, told):
    result = evaluate(run, tmp_path, "--server", server.address, *DE_EN, sources=sources)
    assert result.exit_code == 1
    assert told in result.stderr


def test_evaluation_reads_compressed_files_and_marks_of_byte_order(run, server, tmp_path):
    (tmp_path / "src").write_bytes("\ufeffja\nnein\n".encode())
    (tmp_path / "ref.gz").write_bytes(gzip.compress("\ufeffJA\nNEIN\n".encode()))
    files = ["--source", str(tmp_path / "src"), "--reference", str(tmp_path / "ref.gz")]
    result = run("evaluate", "--server", server.address, *DE_EN, *files, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["chrf"] == 100
    (tmp_path / "ref.gz").write_bytes(b"no gzip")
    result = run("evaluate", "--server", server.address, *DE_EN, *files)
    assert result.exit_code == 1
    assert "ref.gz can't be decompressed" in result.stderr


def test_evaluation_does_not_begin_where_its_output_could_not_be_kept(run, server, tmp_path):
    kept = tmp_path / "nowhere" / "kept"
    result = evaluate(run, tmp_path, "--server", server.address, *DE_EN, "--output", str(kept))
    assert result.exit_code == 1
    assert f"there is no folder {kept.parent}" in result.stderr
    assert not server.servicer.configs


def test_command_whose_extra_is_missing_says_so(run, server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.delitem(sys.modules, "dragoman.cli.evaluate", raising=False)
    assert run("evaluate", "--help").exit_code == 0
    result = evaluate(run, tmp_path, "--server", server.address, *DE_EN)
    assert result.exit_code == 1
    assert "needs sacrebleu" in result.stderr
    assert "'.[evaluate]'" in result.stderr
    assert not server.servicer.configs
