"""The commands as a person runs them, against a real server."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint

import pytest
from click.testing import CliRunner
from google.rpc import error_details_pb2

from dragoman import UnavailableError
from dragoman.cli import main
from dragoman.cli.failure import message_of, missing_extra


@pytest.fixture
def run(server):
    def call(*arguments, stdin=None, **options):
        return CliRunner().invoke(
            main, arguments, input=stdin, env={"DRAGOMAN_SERVER": server.address}, **options
        )

    return call


DE_EN = ("--from", "de", "--to", "en")


def test_help_teaches_and_loads_no_command(monkeypatch):
    code = "import sys; from dragoman.cli import main; main(['--help'], standalone_mode=False); "
    code += "print([name for name in ('torch', 'onnxruntime', 'sacrebleu', 'numpy') if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[-1] == "[]"
    assert 'dragoman translate --from de --to en "Guten Morgen."' in told
    for command in ("translate-file", "models", "evaluate", "serve", "train", "export"):
        assert command in told
    assert "Translate texts, or the lines of standard input." in told


@pytest.fixture
def run_without_training(monkeypatch, run):
    """The commands where a package of ours was left out, as in the image of the server."""

    class Absence:
        def find_spec(self, fullname, path=None, target=None):
            if fullname == "dragoman_training":
                raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)

    for name in [name for name in sys.modules if name.partition(".")[0] == "dragoman_training"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absence(), *sys.meta_path])
    return run


def test_help_tells_of_a_package_that_is_absent(run_without_training):
    told = run_without_training("--help")
    assert told.exit_code == 0
    assert "Not installed." in told.stdout
    assert "Translate texts, or the lines of standard input." in told.stdout


def test_command_whose_package_is_absent_says_what_to_install(run_without_training):
    told = run_without_training("train", "recipe.toml")
    assert told.exit_code == 1
    assert told.stderr == (
        "Error: `dragoman train` needs dragoman_training, which is not installed. "
        "In the source checkout run `make install`, or just\n"
        f"{sys.executable} -m pip install --constraint constraints.txt --editable '.[training]'\n"
    )


def test_timeout_is_told_to_hold_for_texts_alone(run, server):
    assert "standard input has no limit" in " ".join(run("translate", "--help").stdout.split())
    server.servicer.delay_seconds = 0.3
    assert run("translate", *DE_EN, "--timeout", "0.1", "ja").exit_code == 1
    assert run("translate", *DE_EN, "--timeout", "0.1", stdin="ja\n").stdout == "JA\n"


def test_every_command_has_its_help(run):
    for command in ("translate", "translate-file", "models", "evaluate"):
        told = run(command, "--help")
        assert told.exit_code == 0
        assert "Usage: main " in told.stdout


def test_version(run):
    assert run("--version").stdout.startswith("dragoman, version ")


def test_python_m_is_the_command():
    told = subprocess.run(
        [sys.executable, "-m", "dragoman", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith("dragoman, version ")


def test_unknown_command_is_a_usage_error(run):
    assert run("translat").exit_code == 2


def test_texts_are_translated_a_line_each(run):
    told = run("translate", *DE_EN, "guten morgen", "ja")
    assert (told.exit_code, told.stdout) == (0, "GUTEN MORGEN\nJA\n")


def test_lines_of_standard_input_are_translated(run, server):
    told = run("translate", *DE_EN, stdin="guten morgen\r\n\nja")
    assert (told.exit_code, told.stdout) == (0, "GUTEN MORGEN\n\nJA\n")
    assert server.servicer.configs


def test_failed_line_of_standard_input_is_empty_and_told(run):
    told = run("translate", *DE_EN, stdin="a\n!INTERNAL x\nb\n")
    assert (told.exit_code, told.stdout) == (3, "A\n\nB\n")
    assert "line 2: scripted INTERNAL" in told.stderr


def test_a_stream_that_was_idle_for_too_long_is_followed_by_another(server):
    command = [sys.executable, "-m", "dragoman", "translate", "--server", server.address, *DE_EN]
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


def test_failed_line_of_standard_input_is_an_object_too(run):
    told = run("translate", *DE_EN, "--json", stdin=b"a\n!INTERNAL x\n\xff ja\n")
    assert told.exit_code == 3
    translated, *failed = map(json.loads, told.stdout.splitlines())
    assert translated["text"] == "A"
    assert failed == [
        {"source": "!INTERNAL x", "text": None, "status": "INTERNAL", "message": "scripted INTERNAL"},
        {
            "source": "\\xff ja",
            "text": None,
            "status": "INVALID_ARGUMENT",
            "message": "not UTF-8: byte 0 is 0xff",
        },
    ]


def test_line_that_is_no_utf8_fails_alone(run):
    told = run("translate", *DE_EN, stdin=b"\xef\xbb\xbfja\n\xff ja\nnein\n")
    assert (told.exit_code, told.stdout) == (3, "JA\n\nNEIN\n")
    assert "line 2: not UTF-8: byte 0 is 0xff" in told.stderr


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


def test_ctrl_c_ends_quietly(server):
    command = [sys.executable, "-m", "dragoman", "translate", "--server", server.address, *DE_EN]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    process.stdin.write(b"ja\n")
    assert process.stdout.readline() == b"JA\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert (process.returncode, told) == (130, b"Interrupted.\n")


@pytest.mark.parametrize(("closed", "code"), [("<&-", 2), (">&-", 0), ("2>&-", 0)])
def test_closed_standard_streams_are_no_crash(server, closed, code):
    text = "" if closed == "<&-" else "ja"
    command = (
        f"{sys.executable} -m dragoman translate --server {server.address} --from de --to en {text} {closed}"
    )
    process = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert process.returncode == code
    assert "A bug" not in process.stderr
    assert closed != "<&-" or "standard input is closed" in process.stderr


def test_closed_pipe_ends_quietly(server):
    command = [sys.executable, "-m", "dragoman", "translate", "--server", server.address, *DE_EN]
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


def test_n_best_shows_scores(run):
    told = run("translate", *DE_EN, "--n-best", "2", "ja")
    assert told.stdout.splitlines() == ["ja", "  1   -0.5000  JA", "  2   -1.5000  JA!"]


def test_alignments_are_drawn(run):
    told = run("translate", *DE_EN, "--alignments", "guten morgen").stdout
    assert [line.rstrip() for line in told.splitlines()][2:6] == [
        "             guten",
        "             │  morgen",
        "     GUTEN   ██",
        "     MORGEN     ██",
    ]


def test_alignments_are_drawn_to_a_file_beside_the_plain_translation(run, tmp_path):
    told = run("translate", *DE_EN, "--heatmap", str(tmp_path / "one.png"), "guten morgen")
    assert (told.exit_code, told.stdout) == (0, "GUTEN MORGEN\n")
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]


def test_several_texts_are_drawn_to_as_many_files(run, tmp_path):
    options = (*DE_EN, "--heatmap", str(tmp_path / "all.svg"))
    assert run("translate", *options, "ja", "nein").stdout == "JA\nNEIN\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all-1.svg", "all-2.svg"]
    told = run("translate", *options, stdin="ja\n\n" + "so " * 301 + "\nnein\n")
    assert told.exit_code == 0
    assert told.stdout.endswith("\nNEIN\n")
    assert "text 3: " in told.stderr
    assert "but a picture holds 300" in told.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all-1.svg", "all-2.svg", "all-4.svg"]


def test_characters_that_the_font_lacks_are_told_once(run, tmp_path):
    picture = tmp_path / "one.png"
    told = run("translate", *DE_EN, "--heatmap", str(picture), "日本 語")
    assert told.stderr == f"text 1: the font of {picture} lacks some of its characters\n"
    assert picture.exists()


def test_a_text_with_nothing_to_translate_is_shown_as_it_is(run, tmp_path):
    picture = tmp_path / "one.png"
    options = ("--n-best", "2", "--alignments", "--heatmap", str(picture))
    told = run("translate", *DE_EN, *options, "12:30")
    assert (told.exit_code, told.stdout) == (0, "12:30\n               12:30\n")
    assert told.stderr == f"text 1: {picture} can't be drawn: nothing was translated\n"
    assert not list(tmp_path.iterdir())
    assert run("translate", *DE_EN, "12:30").stdout == "12:30\n"
    shown = json.loads(run("translate", *DE_EN, "--json", "12:30").stdout)
    assert (shown["text"], shown["hypotheses"]) == ("12:30", [])
    (tmp_path / "in").write_text("12:30\n")
    assert run("translate-file", *DE_EN, str(tmp_path / "in"), str(tmp_path / "out")).exit_code == 0
    assert (tmp_path / "out").read_text() == "12:30\n"


def test_a_picture_that_can_not_be_written_is_refused_before_anything_is_translated(run, server):
    told = run("translate", *DE_EN, "--heatmap", "picture.bmp", "ja")
    assert told.exit_code == 1
    assert "must end in .png, .svg, .pdf" in told.stderr
    assert not server.servicer.requests


def test_json_carries_everything(run):
    told = run("translate", *DE_EN, "--json", "--alignments", "grüß dich", "ja").stdout
    first, second = map(json.loads, told.splitlines())
    assert (first["source"], first["text"]) == ("grüß dich", "GRÜSS DICH")
    assert first["hypotheses"][0]["alignments"][0]["source_end"] == 4
    assert second["model"] == {
        "name": "de-en",
        "version": "1",
        "source_language": "de",
        "target_language": "en",
    }


def test_terminal_without_unicode_gets_no_error(server):
    command = [sys.executable, "-m", "dragoman", "translate", "--server", server.address, *DE_EN]
    told = subprocess.run(
        [*command, "--alignments", "日本 ja"],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert b"##" in told.stdout
    assert told.stdout.isascii()


def test_models_are_listed(run):
    told = run("models").stdout
    for word in ("de-en/1", "luong", "10.3 M", "int8", "CPU"):
        assert word in told
    # Of the precision in use alone; in a pipe a line for each model.
    head, line = told.splitlines()
    column = head.index("QUALITY")
    assert line[column:].strip() == (
        "BLEU 45.5, chrF 60.0 on val, beam 5, with shortlist, length penalty 0.6; BLEU 44.0 on val, beam 1"
    )
    assert json.loads(run("models", "--json").stdout)["licence"] == "Apache-2.0"


def test_a_model_that_is_not_loaded_is_listed_with_all_that_was_measured(run, server, monkeypatch):
    unloaded = server.model()
    unloaded.ClearField("precision")
    unloaded.ClearField("providers")
    unloaded.loaded = False
    monkeypatch.setattr("tests.clients.conftest.model", lambda: unloaded)
    told = run("models").stdout
    assert "not loaded" in told
    assert "BLEU 46.5 on val, beam 5, with shortlist, length penalty 0.6, fp32" in told
    assert json.loads(run("models", "--json").stdout)["loaded"] is False


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("NOT_FOUND", "scripted"),
        ("UNAVAILABLE", "Is a server running there, and over TLS (grpcs://) or not?"),
        ("RESOURCE_EXHAUSTED", "Try again later."),
        ("DEADLINE_EXCEEDED", "--timeout"),
        ("INTERNAL", "scripted"),
    ],
)
def test_error_is_a_line_and_the_way_out(run, server, code, told):
    server.servicer.failures.extend([server.status(code)] * 5)
    result = run("translate", *DE_EN, "ja")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: scripted")
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_a_server_that_shuts_down_is_not_looked_for(run, server):
    info = error_details_pb2.ErrorInfo(reason="NOT_SERVING", domain="dragoman.v1")
    server.servicer.failures.extend([server.status("UNAVAILABLE", "the server is shutting down", info)] * 5)
    assert run("translate", *DE_EN, "ja").stderr == "Error: the server is shutting down\n"


def test_what_speaks_no_grpc_is_told(run):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as metrics:
        threading.Thread(target=metrics.serve_forever, daemon=True).start()
        told = run("models", "--server", f"127.0.0.1:{metrics.server_port}").stderr
        metrics.shutdown()
    assert "What answers there speaks no gRPC." in told
    assert "Is a server running" not in told


def test_invalid_option_value_is_told(run):
    result = run("translate", *DE_EN, "--beam", "0", "ja")
    assert result.exit_code == 1
    assert "--beam is 0; it must be at least 1" in result.stderr


def test_server_that_refuses_an_option_is_told_by_its_name(run, server):
    details = server.bad_request("options.num_hypotheses", "is 6, and the beam 5")
    message = "options.num_hypotheses: is 6, and the beam 5"
    server.servicer.failures.append(server.status("INVALID_ARGUMENT", message, details))
    result = run("translate", *DE_EN, "--n-best", "6", "ja")
    assert result.stderr == "Error: --n-best is 6, and the beam 5\n"


@pytest.mark.parametrize("command", [("translate", "--timeout"), ("translate-file", "--patience")])
def test_time_that_is_no_number_is_refused(run, command):
    name, option = command
    result = run(name, *DE_EN, option, "nan", "in", "out")
    assert result.exit_code == 2
    assert f"{option}': nan is not a number of seconds" in result.stderr


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("", "Put it into the environment variable DRAGOMAN_TOKEN."),
        ("mine", "The token is the one in the environment variable DRAGOMAN_TOKEN."),
    ],
)
def test_token_that_is_missing_or_wrong_is_told(run, server, monkeypatch, token, told):
    monkeypatch.setenv("DRAGOMAN_TOKEN", token)
    server.servicer.failures.append(server.status("UNAUTHENTICATED"))
    assert told in run("translate", *DE_EN, "ja").stderr


def test_lines_of_standard_input_wait_for_a_server_that_starts(run, server):
    server.stop()
    starter = threading.Timer(0.3, server.start)
    starter.start()
    told = run("translate", *DE_EN, stdin="ja\n")
    starter.join()
    assert (told.exit_code, told.stdout) == (0, "JA\n")


def test_debug_shows_the_traceback(run, server):
    server.servicer.failures.append(server.status("INTERNAL"))
    assert "ServerError" in repr(run("--debug", "translate", *DE_EN, "ja").exception)


@pytest.mark.parametrize(
    ("has_onnxruntime", "has_driver", "extra"),
    [(True, True, "server-base"), (False, True, "server"), (False, False, "server-cpu")],
)
def test_missing_extra_brings_no_second_onnxruntime(monkeypatch, has_onnxruntime, has_driver, extra):
    monkeypatch.setattr("importlib.util.find_spec", {"onnxruntime": has_onnxruntime or None}.get)
    monkeypatch.setattr("shutil.which", {"nvidia-smi": has_driver or None}.get)
    entry_point = EntryPoint(
        name="export", value="dragoman_export.cli:export [export,server]", group="dragoman.commands"
    )
    error = missing_extra("`dragoman export`", entry_point, ModuleNotFoundError(name="onnx"))
    assert error.message.startswith("`dragoman export` needs onnx, which is not installed.")
    assert error.message.endswith(f" '.[export,{extra}]'")


def test_module_missing_in_a_package_of_ours_is_a_bug():
    entry_point = EntryPoint(
        name="serve", value="dragoman_server.cli:serve [server]", group="dragoman.commands"
    )
    with pytest.raises(ModuleNotFoundError):
        missing_extra("`dragoman serve`", entry_point, ModuleNotFoundError(name="dragoman_server.cli"))


def test_command_whose_extra_is_missing_says_so(run, server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.delitem(sys.modules, "dragoman.cli.evaluate", raising=False)
    assert run("evaluate", "--help").exit_code == 0
    result = evaluate(run, tmp_path, "--server", server.address, *DE_EN)
    assert result.exit_code == 1
    assert "needs sacrebleu" in result.stderr
    assert "'.[evaluate]'" in result.stderr
    assert not server.servicer.configs


def test_file_is_translated_and_failures_have_their_exit_code(run, tmp_path):
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\n!INTERNAL x\n")
    result = run("translate-file", *DE_EN, str(source), str(output))
    assert result.exit_code == 3
    assert "2 lines, of which 1 failed: see" in result.stderr
    assert output.read_text() == "A\n\n"
    again = run("translate-file", *DE_EN, str(source), str(output))
    assert again.exit_code == 1
    assert "--overwrite" in again.stderr
    source.write_text("a\n")
    assert run("translate-file", *DE_EN, "--overwrite", str(source), str(output)).exit_code == 0


def test_translations_that_lack_an_end_are_told(run, tmp_path):
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\ntruncated\ntruncated limited\nb\n")
    result = run("translate-file", *DE_EN, str(source), str(output))
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-3:] == [
        "4 lines",
        "of 2 a sentence was too long for the model, and its end was dropped",
        "of 1 the translation ended at the limit of output tokens",
    ]
    for told in (run("translate", *DE_EN, "a", "limited"), run("translate", *DE_EN, stdin="a\nlimited")):
        assert (told.exit_code, told.stdout) == (0, "A\nLIMITED\n")
        assert told.stderr == "text 2: the translation ended at the limit of output tokens\n"


def test_file_into_a_folder_that_is_not_there_is_told(run, tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    result = run("translate-file", *DE_EN, str(source), str(tmp_path / "no" / "out.txt"))
    assert result.exit_code == 1
    assert f"there is no folder {tmp_path / 'no'}" in result.stderr


def test_what_is_told_meanwhile_is_not_broken_where_nobody_looks(run, server, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "in").write_text("a\n")
    reason = ":warning: [no] server is where it was, as far as anybody around here knows of it"
    server.servicer.failures.append(server.status("UNAVAILABLE", reason))
    result = run("translate-file", *DE_EN, str(tmp_path / "in"), str(tmp_path / "out"))
    assert result.exit_code == 0
    first, *_, last_but_one, last = result.stderr.splitlines()
    assert first == reason
    assert last_but_one == "Trying again in 0.5 s; Ctrl-C stops, and nothing is lost."
    assert last == "1 lines"


@pytest.mark.parametrize("names", [("-", "out"), ("in", "-")])
def test_standard_input_and_output_are_no_files(run, tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("a\n")
    result = run("translate-file", *DE_EN, *names)
    assert result.exit_code == 2
    assert "`dragoman translate` reads standard input" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_progress_bar_shows_on_a_terminal_and_nowhere_else(server, tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("a\n" * 50)
    command = [
        sys.executable,
        "-m",
        "dragoman",
        "translate-file",
        "--server",
        server.address,
        *DE_EN,
        str(source),
    ]
    piped = subprocess.run([*command, str(tmp_path / "piped")], capture_output=True, check=True)
    assert piped.stderr == b"50 lines\n"
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([*command, str(tmp_path / "shown")], stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux says so when the other side is closed.
        pass
    os.close(ours)
    assert process.wait() == 0
    assert b"100%" in shown
    assert b"50 lines" in shown


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


def test_evaluation_prints_a_table(run, server, tmp_path):
    told = evaluate(run, tmp_path, "--server", server.address, *DE_EN).stdout
    assert "bleu lc" in told
    assert "checksum" not in told
    assert "100.00" in told


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


def test_evaluation_of_a_language_without_spaces_counts_what_it_is_told(run, server, tmp_path):
    lines = {"sources": "a\n", "references": "今天天气很好。\n"}
    for tokenize, signature in (((), "tok:13a"), (("--tokenize", "zh"), "tok:zh")):
        told = evaluate(run, tmp_path, "--server", server.address, *DE_EN, "--json", *tokenize, **lines)
        scores = json.loads(told.stdout)
        assert signature in scores["signature"]
        assert signature in scores["bleu_lc_signature"]


def test_evaluation_of_a_line_that_fails_says_why(run, server, tmp_path):
    result = evaluate(run, tmp_path, "--server", server.address, *DE_EN, sources="a\n!INTERNAL b\n")
    assert result.exit_code == 1
    assert "scripted INTERNAL" in result.stderr


def test_evaluation_of_files_of_unequal_length_names_both(run, server, tmp_path):
    result = evaluate(run, tmp_path, "--server", server.address, *DE_EN, sources="a\nb\nc")
    assert result.exit_code == 1
    assert "has 3 lines and" in result.stderr


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
