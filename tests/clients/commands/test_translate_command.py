"""`dragoman translate`: what is a text, an option or a file; lines of standard input, pictures, JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from dragoman import UnavailableError
from dragoman.cli.failure import message_of

DE_EN = ("--from", "de", "--to", "en")


@pytest.fixture
def translate(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return partial(run, "translate")


@pytest.fixture
def command(server):
    return [sys.executable, "-m", "dragoman", "translate", "--server", server.address, *DE_EN]


@pytest.mark.parametrize(
    "text", ["- Hallo", "-5 Grad", "-5", "-hallo du", "-h ist so", "--ja, sagte er", "-\nja", "---", "--5"]
)
@pytest.mark.parametrize("is_last", [True, False])
def test_a_text_may_begin_with_a_dash(translate, text, is_last):
    told = translate(*DE_EN, "eins", text, "zwei") if is_last else translate("eins", text, "zwei", *DE_EN)
    assert (told.exit_code, told.stdout, told.stderr) == (0, f"EINS\n{text.upper()}\nZWEI\n", "")


def test_the_value_of_an_option_is_no_text(translate, server):
    told = translate(*DE_EN, "--prefix", "- Yes", "--length-penalty=0.5", "- ja", "--", "--beam")
    assert (told.exit_code, told.stdout) == (0, "- JA\n--BEAM\n")
    assert server.servicer.requests[0].options.target_prefix == "- Yes"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--tpo", "No such option '--tpo'. (Did you mean one of: '--pivot', '--to'?)"),
        ("--tpo=en", "No such option '--tpo'."),
        ("-Hallo", "No such option '-Hallo'. A text that begins with a dash stands after `--`."),
        ("-hallo", "No such option '-hallo'. A text that begins with a dash stands after `--`."),
        ("--qqqqqq", "No such option '--qqqqqq'. A text that begins with a dash stands after `--`."),
    ],
)
def test_an_option_that_there_is_not_is_told(translate, word, told):
    refused = translate(*DE_EN, word, "ja")
    assert refused.exit_code == 2
    assert told in refused.stderr
    assert translate(*DE_EN, "--", word).stdout == f"{word.upper()}\n"


def test_options_of_one_letter_are_options_and_a_dash_alone_is_standard_input(translate):
    assert translate("-h").stdout.startswith("Usage: ")
    assert translate(*DE_EN, "-", stdin="ja\nnein\n").stdout == "JA\nNEIN\n"


@pytest.mark.parametrize("name", ["book.de", "Mein Buch", "./book.de"])
def test_a_text_that_names_a_file_is_asked_about(translate, server, tmp_path, name):
    (tmp_path / name).write_text("ja\n")
    refused = translate(*DE_EN, "nein", name)
    assert refused.exit_code == 2
    for way in ("dragoman translate-file", "OUTPUT", "dragoman translate ... < ", "`--`"):
        assert way in refused.stderr
    assert not server.servicer.requests
    assert translate(*DE_EN, "--", name).stdout == f"{name.upper()}\n"


@pytest.mark.parametrize("text", ["folder", "nein\x00", "ä" * 5000, ""])
def test_a_text_that_names_no_file_is_a_text(translate, tmp_path, text):
    (tmp_path / "folder").mkdir()
    assert translate(*DE_EN, text).stdout == f"{text.upper()}\n"


def test_texts_lines_and_paragraphs_are_translated(run, server):
    told = run("translate", *DE_EN, "guten morgen", "ja")
    assert (told.exit_code, told.stdout) == (0, "GUTEN MORGEN\nJA\n")
    assert not server.servicer.configs
    told = run("translate", *DE_EN, stdin="guten morgen\r\n\nja")
    assert (told.exit_code, told.stdout) == (0, "GUTEN MORGEN\n\nJA\n")
    assert server.servicer.configs
    told = run("translate", *DE_EN, "--join-lines", stdin="guten\nmorgen\n\nja\n")
    assert (told.exit_code, told.stdout) == (0, "GUTEN MORGEN\n\nJA\n")


def test_failed_line_of_standard_input_is_empty_and_told_or_an_object(run):
    lines = b"\xef\xbb\xbfa\n!INTERNAL x\n\xff ja\nb\n"
    told = run("translate", *DE_EN, stdin=lines)
    assert (told.exit_code, told.stdout) == (3, "A\n\n\nB\n")
    assert "line 2: scripted INTERNAL" in told.stderr
    assert "line 3: not UTF-8: byte 0 is 0xff" in told.stderr
    told = run("translate", *DE_EN, "--json", stdin=lines)
    assert told.exit_code == 3
    first, *failed, last = map(json.loads, told.stdout.splitlines())
    assert (first["text"], last["text"]) == ("A", "B")
    message = "not UTF-8: byte 0 is 0xff"
    assert failed == [
        {"source": "!INTERNAL x", "text": None, "status": "INTERNAL", "message": "scripted INTERNAL"},
        {"source": "\\xff ja", "text": None, "status": "INVALID_ARGUMENT", "message": message},
    ]


def test_a_stream_that_was_idle_for_too_long_is_followed_by_another(server, command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    for number in range(3):
        # The stream before has ended, while its thread still waits for a line.
        server.servicer.idles.append(1)
        process.stdin.write(b"ja %d\n" % number)
        assert process.stdout.readline() == b"JA %d\n" % number
    time.sleep(0.5)
    process.stdin.write(b"nein")
    told, _ = process.communicate()
    assert (process.returncode, told) == (0, b"NEIN\n")
    assert len(server.servicer.configs) == 4


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("ja\nnein\n".encode("utf-16"), "text in UTF-16, not in UTF-8; `iconv -f UTF-16 -t UTF-8 > "),
        (b"PK\x03\x04rest\nnein\n", "a zip file"),
    ],
)
def test_standard_input_that_is_no_text_in_utf8_is_refused(run, content, told):
    refused = run("translate", *DE_EN, stdin=content)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"Error: standard input is {told}" in refused.stderr


@pytest.mark.parametrize("beginning", ["errors resolving nobody:1: ", "DNS resolution failed for nobody:1: "])
def test_name_that_no_machine_has_is_told(beginning):
    error = UnavailableError(f"{beginning}Domain name not found")
    assert message_of(error).endswith("\nNobody knows a machine of that name: is it spelt right?")


def test_ctrl_c_ends_quietly(command):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **pipes, bufsize=0)
    process.stdin.write(b"ja\n")
    assert process.stdout.readline() == b"JA\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert (process.returncode, told) == (130, b"Interrupted.\n")


@pytest.mark.parametrize(("closed", "code"), [("<&-", 2), (">&-", 0), ("2>&-", 0)])
def test_closed_standard_streams_are_no_crash(command, closed, code):
    line = " ".join([*command, "" if closed == "<&-" else "ja", closed])
    process = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert process.returncode == code
    assert "A bug" not in process.stderr
    assert closed != "<&-" or "standard input is closed" in process.stderr


def test_closed_pipe_ends_quietly(command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stdin.write(b"ja\n" * 1000)
    process.stdin.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_options_reach_the_server(run, server):
    told = run("translate", *DE_EN, "--beam", "4", "--n-best", "2", "--prefix", "Yes", "--model", "de-en/1",
               "--length-penalty", "0.5", "--max-output-tokens", "7", "--long-sentences", "reject",
               "--segmentation", "line", "ja")  # fmt: skip
    assert told.exit_code == 0
    (request,) = server.servicer.requests
    options = request.options
    assert (options.beam_size, options.num_hypotheses, options.target_prefix) == (4, 2, "Yes")
    assert (options.length_penalty, options.max_output_tokens, options.length_policy) == (0.5, 7, 2)
    assert (request.segmentation, request.model) == (2, "de-en/1")


def test_n_best_shows_scores_and_alignments_are_drawn(run):
    told = run("translate", *DE_EN, "--n-best", "2", "ja").stdout
    assert told.splitlines() == ["ja", "  1   -0.5000  JA", "  2   -1.5000  JA!"]
    told = run("translate", *DE_EN, "--alignments", "guten morgen").stdout
    assert [line.rstrip() for line in told.splitlines()][2:6] == [
        "             guten",
        "             │  morgen",
        "     GUTEN   ██",
        "     MORGEN     ██",
    ]


def test_a_text_with_nothing_to_translate_is_shown_as_it_is(run, tmp_path):
    told = run("translate", *DE_EN, "--n-best", "2", "--alignments", "12:30")
    assert (told.exit_code, told.stdout) == (0, "12:30\n               12:30\n")
    assert run("translate", *DE_EN, "12:30").stdout == "12:30\n"
    shown = json.loads(run("translate", *DE_EN, "--json", "12:30").stdout)
    assert (shown["text"], shown["hypotheses"]) == ("12:30", [])
    (tmp_path / "in").write_text("12:30\n")
    assert run("translate-file", *DE_EN, str(tmp_path / "in"), str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out").read_text() == "12:30\n"


def test_json_carries_everything(run):
    told = run("translate", *DE_EN, "--json", "--alignments", "grüß dich", "ja").stdout
    first, second = map(json.loads, told.splitlines())
    assert (first["source"], first["text"]) == ("grüß dich", "GRÜSS DICH")
    assert first["hypotheses"][0]["alignments"][0]["source_end"] == 4
    languages = {"source_language": "de", "target_language": "en"}
    assert second["model"] == {"name": "de-en", "version": "1", **languages}


def test_terminal_without_unicode_gets_no_error(command):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command += ["--alignments", "日本 ja"]
    told = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert b"##" in told.stdout
    assert told.stdout.isascii()
