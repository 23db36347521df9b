"""The whole path in one minute: starts a server with the shipped model, translates German, ends the server.

    python clients/demo.py [--models FOLDER]

Exit code 0, or 1 with what went wrong: the end of the server's log where it does not come up.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dragoman import Client, DeadlineExceededError, DragomanError, Translation, UnavailableError
from dragoman.cli.pictures import alignment_picture

MODELS = Path(__file__).resolve().parent.parent / "models"
START_SECONDS = 60.0
STOP_SECONDS = 15.0

TEXTS = [
    "Guten Morgen. Wie geht es dir heute?\nIch habe den Schlüssel zu Hause vergessen.",
    "Wo ist der nächste Bahnhof?",
    "Das Buch, das du mir gegeben hast, ist sehr interessant.",
    "Wir sollten jetzt gehen, sonst verpassen wir den letzten Zug.",
]
PICTURED = "Meine Schwester hat das Haus verkauft."
METRICS = (
    "dragoman_requests_total",
    "dragoman_sentences_total",
    "dragoman_target_tokens_total",
    "dragoman_request_seconds_sum",
    "dragoman_request_seconds_count",
    "dragoman_provider_info",
)


def main() -> int:
    """Runs the demo and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", type=Path, default=MODELS, help="folder of bundles (default: the shipped)"
    )
    models = parser.parse_args().models
    console = Console(highlight=False, soft_wrap=True)
    try:
        with running_server(models, console) as (address, metrics_port):
            show(address, metrics_port, console)
    except (RuntimeError, DragomanError) as error:
        console.print(Text(str(error)))
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return 130
    command = os.path.relpath(Path(sys.executable).with_name("dragoman"))
    console.print(
        f"\nThe server has ended. Start one of your own: {command} serve --models models --http-port 8080\n"
        "Then http://localhost:8080 has a page.",
        style="dim",
    )
    return 0


@contextmanager
def running_server(models: Path, console: Console) -> Iterator[tuple[str, int]]:
    """A server on free ports of loopback, ready for calls; gives its address and the port of its metrics.

    Ends it in any case. Raises RuntimeError with the end of its log where it does not come up.
    """
    port, metrics_port = free_ports(2)
    address = f"127.0.0.1:{port}"
    command = [sys.executable, "-m", "dragoman", "serve", "--models", str(models)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--metrics-port", str(metrics_port)]
    command += ["--log-format", "text"]
    console.print(f"$ dragoman {' '.join(command[3:])}\n", style="dim")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_serving(address, process, log.fileno())
            yield address, metrics_port
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def wait_until_serving(address: str, process: subprocess.Popen[bytes], log: int) -> None:
    """Asks for the server's health until it is good. Raises RuntimeError with the end of its log."""
    deadline = time.monotonic() + START_SECONDS
    with Client(address, timeout_seconds=5) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if client.health():
                    return
            except (UnavailableError, DeadlineExceededError):
                pass
            time.sleep(0.1)
    end = os.pread(log, 1 << 16, 0).decode(errors="replace").splitlines()[-15:]
    raise RuntimeError("\n".join(["The server did not come up. The end of its log:", *end]))


def show(address: str, metrics_port: int, console: Console) -> None:
    """Translates, and prints what a first visitor wants to see."""
    with Client(address) as client:
        for model in client.models():
            devices = sorted({name.removesuffix("ExecutionProvider") for name in model.providers.values()})
            size = f"{model.parameters / 1e6:.1f} M parameters"
            console.print(f"{model.reference}: {model.architecture}, {size}")
            console.print(
                f"device in use: [bold]{', '.join(devices)}[/], precision: [bold]{model.precision}[/]\n"
            )
        started_at = time.perf_counter()
        translations = client.translate(TEXTS, source="de", target="en")
        seconds = time.perf_counter() - started_at
        for text, translation in zip(TEXTS, translations, strict=True):
            print_translation(text, translation, console)
        sentences = sum(translation.sentences for translation in translations)
        console.print(f"{len(TEXTS)} texts, {sentences} sentences: {1000 * seconds:.0f} ms\n", style="green")

        started_at = time.perf_counter()
        (translation,) = client.translate([PICTURED], source="de", target="en", alignments=True)
        seconds = time.perf_counter() - started_at
        print_translation(PICTURED, translation, console)
        picture = alignment_picture(
            PICTURED,
            translation.hypotheses[0],
            width=console.width - 4,
            ascii_only=console.options.ascii_only,
        )
        console.print(Padding(picture, (0, 0, 1, 4), expand=False))
        timings = translation.timings
        parts = {
            "queue": timings.queue_seconds,
            "encoder": timings.encode_seconds,
            "beam search": timings.decode_seconds,
        }
        breakdown = ", ".join(f"{name} {1000 * part:.1f} ms" for name, part in parts.items())
        console.print(f"1 sentence: {1000 * seconds:.0f} ms, of which {breakdown}\n", style="green")
    console.print(f"http://127.0.0.1:{metrics_port}/metrics", style="dim")
    for line in metrics(metrics_port):
        console.print(Text(f"    {line}"))


def print_translation(text: str, translation: Translation, console: Console) -> None:
    """The text, and below it the translation with its score."""
    console.print(Text(text, style="cyan"))
    score = f"  ({translation.hypotheses[0].score:.3f})"
    console.print(Text.assemble((translation.text, "bold"), (score, "dim")), "\n")


def metrics(port: int) -> list[str]:
    """A few lines of the server's metrics, without those that are 0."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
        lines = response.read().decode().splitlines()
    return [line for line in lines if line.startswith(METRICS) and not line.endswith(" 0.0")]


if __name__ == "__main__":
    sys.exit(main())
