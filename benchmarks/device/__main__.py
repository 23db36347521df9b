"""`python -m benchmarks.device`: options in, tables out."""

from functools import partial
from pathlib import Path

import click
from dragoman_bundle import Bundle, BundleError, open_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.device.measurement import Case, Decoded, decode, describe_gpu
from benchmarks.device.tables import ratio_rows, ratio_table, speed_rows, speed_table
from benchmarks.engines import translation_options
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    input_option,
    json_option,
    markdown_option,
    repeats_option,
    threads_option,
    whole_numbers,
)
from benchmarks.progress import Progress
from benchmarks.report import Report
from dragoman_server.engine import EngineError, Sentence
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.options import DecoderOptions
from dragoman_server.text.document import prepare

_BATCHES = {"device": True, "host": False}
"""For each kind whether batches stay on the device."""


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option(
    "--device",
    default="cuda",
    show_default=True,
    type=click.Choice(["cuda", "cpu"]),
    help="Where the graphs run. On the CPU it only shows that the command works.",
)
@click.option(
    "--precisions", default="fp16,fp32", show_default=True, help="Which graphs; what is absent is left out."
)
@click.option(
    "--sentences",
    default="1,8,64,256",
    show_default=True,
    callback=whole_numbers,
    help="Places in the batch.",
)
@beam_option
@click.option("--shortlist/--no-shortlist", default=True, show_default=True, help="Decode with a shortlist.")
@input_option
@click.option(
    "--limit", default=512, show_default=True, type=click.IntRange(min=1), help="Take only so many sentences."
)
@threads_option
@repeats_option
@json_option
@markdown_option
def device(
    *,
    bundle: Path,
    device: str,
    precisions: str,
    sentences: list[int],
    beam: int,
    shortlist: bool,
    source: Path,
    limit: int,
    threads: int,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Decode a file with batches that stay on the device and with batches that regroup on the host.

    \b
      python -m benchmarks.device --bundle models/m30k/1 --json device.json
      python -m benchmarks.device --bundle models/m30k/1 --device cpu --precisions fp32,int8 --limit 50
    """
    machine = describe_machine()
    corpus = read_corpus(source, None, limit)
    try:
        opened = open_bundle(bundle)
        decoders = open_decoders(opened, device, precisions.split(","), threads, shortlist)
    except (BundleError, EngineError) as error:
        raise click.ClickException(str(error)) from error
    work = _tokenize(opened, corpus.sources, beam)
    cases = {
        Case(precision=precision, batch=batch, sentences=places): partial(
            decode, opened, decoder, work, places=places, beam_size=beam
        )
        for (precision, batch), decoder in decoders.items()
        for places in sentences
    }
    for run in cases.values():
        # Kernels are loaded and memory is taken when they are first needed.
        run()
    progress = Progress(len(cases) * repeats)

    def on_done(repeat: int, case: Case, result: Decoded) -> None:
        progress.advance(f"{case}: {len(work) / result.seconds:,.0f} sentences/s")

    runs = interleave(cases, repeats, on_done)
    rows, ratios = speed_rows(runs, len(work)), ratio_rows(runs)
    gpu = describe_gpu() if device == "cuda" else None
    title = f"{corpus.name}, {len(work):,} sentences, beam {beam}, on {gpu or device}, median of {repeats}"
    manifest = opened.manifest
    Report(
        command=command_line("benchmarks.device"),
        results={
            "machine": machine,
            "device": device,
            "gpu": gpu,
            "bundle": manifest.key,
            "shortlist": shortlist and opened.shortlist is not None,
            "beam": beam,
            "input": corpus.name,
            "repeats": repeats,
            "rows": rows,
            "ratios": ratios,
        },
        tables=[speed_table(rows, title), ratio_table(ratios)],
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


def open_decoders(
    bundle: Bundle, device: str, precisions: list[str], threads: int, shortlist: bool
) -> dict[tuple[str, str], OnnxDecoder]:
    """By precision and batch. Raises ClickException where the bundle has none of the precisions."""
    present = [precision for precision in precisions if precision in bundle.manifest.precisions]
    if not present:
        has = ", ".join(bundle.manifest.precisions)
        raise click.ClickException(
            f"{bundle.path} has none of {', '.join(precisions)}, only {has}; "
            "`dragoman export` adds them with --precisions, and --precisions here names others"
        )
    return {
        (precision, batch): open_decoder(
            bundle,
            DecoderOptions(
                device=device,
                precision=precision,
                num_threads=threads,
                use_shortlist=shortlist,
                stays_on_device=stays_on_device,
            ),
        )
        for precision in present
        for batch, stays_on_device in _BATCHES.items()
    }


def _tokenize(bundle: Bundle, lines: tuple[str, ...], beam: int) -> list[Sentence]:
    options = translation_options(bundle, beam)
    documents = [prepare(line, bundle, options, deadline=None) for line in lines]
    return [sentence for document in documents for sentence in document.sentences]


if __name__ == "__main__":
    device()
