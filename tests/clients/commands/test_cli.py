"""The commands as a person runs them, against a real server, and each with as little as it may be called."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint, entry_points

import click
import pytest
from click.testing import CliRunner
from google.rpc import error_details_pb2

from dragoman.cli.failure import missing_extra
from dragoman.cli.group import main

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
    listed = [line.split()[0] for line in told.splitlines() if line.startswith("  ") and line[2:3].isalpha()]
    registered = set(entry_points(group="dragoman.commands").names)
    assert registered == registered.intersection(listed)
    assert listed.index("serve") < listed.index("train") < listed.index("evaluate") < listed.index("smt")


def test_python_m_is_the_command_and_a_mistyped_one_is_told_what_it_is_like(run):
    command = [sys.executable, "-m", "dragoman", "--version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("dragoman, version ")
    assert "Did you mean translate" in run("transalte").stderr


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


def test_help_and_a_command_tell_of_a_package_that_is_absent(run_without_training):
    told = run_without_training("--help")
    assert told.exit_code == 0
    assert "Not installed." in told.stdout
    assert "Translate texts, or the lines of standard input." in told.stdout
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


def test_models_are_listed(run, server, monkeypatch):
    told = run("models").stdout
    for word in ("de-en/1", "10.3 M", "int8", "CPU"):
        assert word in told
    # In a pipe a line for each model.
    head, line = told.splitlines()
    assert line[head.index("QUALITY") :].strip() == "BLEU 45.5 on val"
    # Of one all is said, of the precision in use alone.
    told = run("models", "--model", "de-en").stdout
    assert "luong" in told
    assert "chrF 60.0 on val, beam 5, with shortlist, length penalty 0.6, int8" in told
    assert "BLEU 44.0 on val, beam 1, int8" in told
    assert "fp32" not in told
    assert json.loads(run("models", "--json").stdout)["licence"] == "Apache-2.0"
    # Of one that is not loaded all that was measured.
    unloaded = server.model()
    unloaded.ClearField("precision")
    unloaded.ClearField("providers")
    unloaded.loaded = False
    monkeypatch.setattr("tests.clients.conftest.model", lambda: unloaded)
    told = run("models", "--model", "de-en").stdout
    assert "not loaded" in told
    assert "BLEU 46.5 on val, beam 5, with shortlist, length penalty 0.6, fp32" in told
    assert json.loads(run("models", "--json").stdout)["loaded"] is False


def test_what_a_server_says_steers_no_terminal(run, server, monkeypatch):
    forged = server.model()
    forged.version = forged.architecture = "\x1b[31m[red]"
    monkeypatch.setattr("tests.clients.conftest.model", lambda: forged)
    listed = run("models", color=True).stdout
    assert "\x1b" not in listed
    assert "\\x1b[31m[red]" in listed
    server.servicer.failures.append(server.status("INVALID_ARGUMENT", "no\x1b]0;x\x07 way"))
    assert "no\\x1b]0;x\\x07 way" in run("models", color=True).stderr


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


def test_a_server_that_shuts_down_is_not_looked_for_and_an_option_it_refuses_is_named(run, server):
    info = error_details_pb2.ErrorInfo(reason="NOT_SERVING", domain="dragoman.v1")
    server.servicer.failures.extend([server.status("UNAVAILABLE", "the server is shutting down", info)] * 5)
    assert run("translate", *DE_EN, "ja").stderr == "Error: the server is shutting down\n"
    server.servicer.failures.clear()
    details = server.bad_request("options.num_hypotheses", "is 6, and the beam 5")
    message = "options.num_hypotheses: is 6, and the beam 5"
    server.servicer.failures.append(server.status("INVALID_ARGUMENT", message, details))
    assert run("translate", *DE_EN, "--n-best", "6", "ja").stderr == "Error: --n-best is 6, and the beam 5\n"


def test_what_speaks_no_grpc_is_told(run):
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as metrics:
        threading.Thread(target=metrics.serve_forever, daemon=True).start()
        told = run("models", "--server", f"127.0.0.1:{metrics.server_port}").stderr
        metrics.shutdown()
    assert "What answers there speaks no gRPC." in told
    assert "Is a server running" not in told


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (("translate", *DE_EN, "--beam", "0", "ja"), 1, "--beam is 0; it must be at least 1"),
        (("translate", *DE_EN, "--timeout", "nan", "ja"), 2, "--timeout': nan is not a number of seconds"),
        (
            ("translate-file", *DE_EN, "--patience", "nan", "in", "out"),
            2,
            "--patience': nan is not a number of seconds",
        ),
    ],
)
def test_invalid_option_value_is_told(run, command, code, told):
    result = run(*command)
    assert result.exit_code == code
    assert told in result.stderr


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


@pytest.mark.parametrize(
    ("has_onnxruntime", "has_driver", "extra"),
    [(True, True, "server-base"), (False, True, "server"), (False, False, "server-cpu")],
)
def test_missing_extra_brings_no_second_onnxruntime(monkeypatch, has_onnxruntime, has_driver, extra):
    monkeypatch.setattr("importlib.util.find_spec", {"onnxruntime": has_onnxruntime or None}.get)
    monkeypatch.setattr("shutil.which", {"nvidia-smi": has_driver or None}.get)
    value = "dragoman_export.cli:export [export,server]"
    entry_point = EntryPoint(name="export", value=value, group="dragoman.commands")
    error = missing_extra("`dragoman export`", entry_point, ModuleNotFoundError(name="onnx"))
    assert error.message.startswith("`dragoman export` needs onnx, which is not installed.")
    assert error.message.endswith(f" '.[export,{extra}]'")
    # A module that is missing in a package of ours is a bug.
    with pytest.raises(ModuleNotFoundError):
        missing_extra("`dragoman export`", entry_point, ModuleNotFoundError(name="dragoman_export.cli"))


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


NEEDS_NONE = {
    ("doctor",): "models: none in models",
    ("keys", "list"): "tokens can't be read: No such file or directory",
    ("models",): "Is a server running there",
    ("serve",): "the models folder models does not exist: --models names the folder to serve",
}
"""Commands that need no argument, and what they say where there are no models, tokens or servers."""


@pytest.mark.parametrize("path", list(commands(main)), ids=" ".join)
def test_a_command_has_its_help_and_a_bare_one_says_what_it_lacks(path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner(env={"DRAGOMAN_SERVER": "127.0.0.1:1"})
    helped, bare = runner.invoke(main, [*path, "--help"]), runner.invoke(main, path)
    assert helped.exit_code == 0
    assert helped.output.startswith("Usage: ")
    told = bare.output + capfd.readouterr().err
    assert bare.exception is None or isinstance(bare.exception, SystemExit), bare.exception
    assert "A bug" not in told
    assert "Traceback" not in told
    assert bare.exit_code == (1 if path in NEEDS_NONE else 2)
    assert NEEDS_NONE.get(path, "Usage: ") in told
