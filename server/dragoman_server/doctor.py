"""The `dragoman doctor` command: what keeps a server from its work, and what to do."""

import platform
import resource
import shutil
import socket
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal, NamedTuple

import click
from dragoman_bundle.cli import list_bundles
from dragoman_bundle.machine import available_memory, count_processors

from dragoman_server.config import RequestLimits, ServerConfig

Verdict = Literal["ok", "warning", "error"]
EXTRAS = {
    "web": (
        ("starlette", "uvicorn", "httptools", "py3langid", "lingua"),
        "the page, the APIs over HTTP, detection",
    ),
    "get": (("onnx", "onnx_ir", "huggingface_hub"), "`dragoman get`"),
    "align": (("numba",), "saved aligners"),
    "training": (("torch",), "`dragoman train`"),
}
"""Extras, each with modules that it brings and what it is for."""
MIN_MEMORY = 1 << 30
"""Free memory in bytes below which a model of real size may find none."""
VECTOR_INSTRUCTIONS = ("avx512_vnni", "avx_vnni", "asimddp")
"""Names, in /proc/cpuinfo, of instructions that multiply 8-bit integers quickly."""


class Finding(NamedTuple):
    """What was looked at, and what to do where it is not as it should be."""

    verdict: Verdict
    subject: str
    found: str
    way_out: str = ""


@click.command()
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    default=ServerConfig.models,
    show_default=True,
    help="Folder of bundles that a server would serve; every file is checked.",
)
def doctor(models: Path) -> None:
    """Look for what keeps a server from its work, and say what to do.

    Versions, extras, where graphs can run, processors, memory, open files, ports, and the models folder. The
    exit code is 1 where a server would not start.
    """
    marks = {"ok": "ok     ", "warning": "warning", "error": "ERROR  "}
    num_errors = 0
    for finding in _examine(models):
        num_errors += finding.verdict == "error"
        click.echo(f"{marks[finding.verdict]}  {finding.subject}: {finding.found}")
        if finding.way_out:
            click.echo(f"         {finding.way_out}")
    if num_errors:
        raise click.exceptions.Exit(1)


def _examine(models: Path) -> Iterator[Finding]:
    version = f"dragoman {metadata.version('dragoman')}, Python {platform.python_version()}"
    yield Finding("ok", "versions", f"{version}, {platform.machine()}")
    yield from _examine_extras()
    yield _examine_onnxruntime()
    yield from _examine_machine()
    yield from map(_examine_port, ("port", "metrics_port"))
    yield from _examine_models(models)


def _examine_extras() -> Iterator[Finding]:
    for extra, (modules, purpose) in EXTRAS.items():
        try:
            for module in modules:
                import_module(module)
        except ImportError as error:
            found = f"not installed ({error.name or error}); only {purpose} needs it"
        else:
            found = f"installed: {purpose}"
        yield Finding("ok", f"extra {extra}", found)


def _examine_onnxruntime() -> Finding:
    try:
        from dragoman_server.engine.onnx.session import installed
    except ImportError as error:
        way_out = "Install the extra server-cpu, or server where there is an NVIDIA GPU."
        return Finding("error", "onnxruntime", f"missing: {error}", way_out)
    version, providers = installed()
    names = [name.removesuffix("ExecutionProvider") for name in providers]
    found = f"{version}, {', '.join(names)}"
    if shutil.which("nvidia-smi") and "CUDAExecutionProvider" not in providers:
        lack = "A GPU's driver is here, and this build can't use it"
        return Finding("warning", "onnxruntime", found, f"{lack}: install server in place of server-cpu.")
    return Finding("ok", "onnxruntime", found)


def _examine_machine() -> Iterator[Finding]:
    cpuinfo = Path("/proc/cpuinfo")
    flags = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
    quick = [name for name in VECTOR_INSTRUCTIONS if name in flags]
    found = f"{count_processors()} that this process may use"
    if quick:
        yield Finding("ok", "processors", f"{found}, with {', '.join(quick)}")
    else:
        way_out = "int8 models run, but slower than with AVX-512 VNNI, AVX-VNNI or Arm's dot products."
        yield Finding("warning", "processors", found, way_out)
    memory = available_memory()
    if memory is not None:
        way_out = "--max-loaded-models bounds how many models are loaded at a time."
        yield _lowness(memory < MIN_MEMORY, "memory", f"{memory / (1 << 30):.1f} GiB free", way_out)
    num_files, wanted = resource.getrlimit(resource.RLIMIT_NOFILE)[1], RequestLimits.max_connections
    is_bounded = num_files != resource.RLIM_INFINITY
    found = f"{num_files:,} at most" if is_bounded else "no limit"
    way_out = f"The server takes fewer connections than {wanted:,}: raise `ulimit -n`."
    yield _lowness(is_bounded and num_files < wanted, "open files", found, way_out)


def _lowness(is_low: bool, subject: str, found: str, way_out: str) -> Finding:
    return Finding("warning", subject, found, way_out) if is_low else Finding("ok", subject, found)


def _examine_port(name: str) -> Finding:
    port, option = getattr(ServerConfig, name), "--" + name.replace("_", "-")
    try:
        with socket.create_server((ServerConfig.host, port)):
            return Finding("ok", f"port {port}", f"free for {option}")
    except OSError as error:
        way_out = f"A server may be running already; {option} chooses another."
        return Finding("warning", f"port {port}", str(error), way_out)


def _examine_models(folder: Path) -> Iterator[Finding]:
    bundles = list(list_bundles(folder))
    for key, problem in bundles:
        yield Finding("error" if problem else "ok", f"model {key}", problem or "every file is whole")
    if not bundles:
        way_out = "`dragoman get de-en` fetches one; --models names another folder."
        yield Finding("error", "models", f"none in {folder}", way_out)
