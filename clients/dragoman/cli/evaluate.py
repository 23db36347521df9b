"""`dragoman evaluate`: how good a system translates a test set, by sacreBLEU (Post 2018).

Without a source: how well a language model predicts one.

sacreBLEU is imported when a translation is measured: the bare install does not bring it.
"""

import gzip
import json
import time
import zlib
from collections.abc import Iterator
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from dragoman.cli.failure import load
from dragoman.cli.models import console_of_lines
from dragoman.cli.system import OpenSystem, System, open_server

BLOCK_LINES = 512
"""Lines given to the system at once: the step of the progress bar."""
OPTIONS_OF_LANGUAGE_MODELS = ("checkpoints", "reference", "device", "as_json")
DETAILS = ("bundle", "checksum", "precision", "shortlist", "length_penalty")
"""The description of the system in --json: the name/version of a bundle's or a server's model, a bundle's
checksum, the graphs' precision, whether it decoded with a shortlist, and the length penalty; null where
that is unknown, or there is none."""

Results = dict[str, str | float | None]


@click.command(context_settings={"show_default": True})
@click.option("--server", metavar="HOST:PORT", help="Measure a server; needs --from and --to.")
@click.option(
    "--bundle", metavar="FOLDER", help="Measure a bundle, such as models/de-en/3, without a server."
)
@click.option(
    "--checkpoint",
    "checkpoints",
    metavar="FILE",
    multiple=True,
    help="Measure a checkpoint of training, such as runs/NAME/best.safetensors, in PyTorch; several are an "
    "ensemble.",
)
@click.option("--model", metavar="NAME[/VERSION]", help="Model of --server.  [default: the server chooses]")
@click.option(
    "--from", "source_language", metavar="LANG", help="Language of the source; only --server needs it."
)
@click.option(
    "--to", "target_language", metavar="LANG", help="Language of the reference; only --server needs it."
)
@click.option(
    "--source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The test set: a sentence a line. Without it a language model is measured on the reference.",
)
@click.option(
    "--reference",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its translation, line by line.",
)
@click.option(
    "--beam",
    "beam_size",
    type=click.IntRange(min=1),
    default=5,
    help="Hypotheses kept while searching; 1 is greedy.",
)
@click.option(
    "--length-penalty",
    type=click.FloatRange(min=0, max=10),
    help="Exponent of the length penalty: choose it on a validation set.  [default: the model's]",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    help="Where it runs. Not for --server, which chose at its start.",
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "int8", "fp16"]),
    default="auto",
    help="Which of a bundle's graphs run; auto takes what suits the device. Not for --server.",
)
@click.option(
    "--shortlist/--no-shortlist",
    default=None,
    help="Whether a bundle is decoded with its lexical shortlist; on a CPU no greedy search over fewer than "
    "12,000 target pieces is.  [default: where "
    "it has one]",
)
@click.option(
    "--tokenize",
    type=click.Choice(["13a", "char", "intl", "none", "zh"]),
    default="13a",
    help="How sacreBLEU finds words. char suits languages written without spaces, zh Chinese.",
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Fit the confidence of a bundle's translations to this text, which its model was not trained on, "
    "and write it into the bundle; 500 lines are plenty.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Keep the translations here.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
def evaluate(
    *,
    server: str | None,
    bundle: str | None,
    checkpoints: tuple[str, ...],
    model: str | None,
    source_language: str | None,
    target_language: str | None,
    source: Path | None,
    reference: Path,
    beam_size: int,
    length_penalty: float | None,
    device: str,
    precision: str,
    shortlist: bool | None,
    tokenize: str,
    calibrate: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure translation quality on a test set: BLEU and chrF.

    Give one of --server, --bundle and --checkpoint. Without --source, the perplexity of a language model.

    \b
      dragoman evaluate --bundle models/de-en/3 --source val.de --reference val.en
      dragoman evaluate --bundle models/de-en/3 --source val.de --reference val.en --calibrate
      dragoman evaluate --checkpoint runs/tatoeba-de-en/best.safetensors --source val.de --reference val.en
      dragoman evaluate --server localhost:50051 --from de --to en --source val.de --reference val.en --json
    """
    given = {"server": server and (server,), "bundle": bundle and (bundle,), "checkpoint": checkpoints}
    located = {kind: locations for kind, locations in given.items() if locations}
    if len(located) != 1:
        raise click.UsageError("give one of --server, --bundle and --checkpoint")
    (kind, locations), *_ = located.items()
    if model is not None and kind != "server":
        raise click.UsageError("--model chooses among those of --server")
    if calibrate and kind != "bundle":
        raise click.UsageError("--calibrate writes into a --bundle")
    if source is None:
        if kind != "checkpoint":
            kinds = "only a language model, a --checkpoint, is measured without"
            raise click.UsageError(f"give --source; {kinds}")
        _refuse_options_of_translations(click.get_current_context())
        if len(checkpoints) > 1:
            raise click.UsageError("an ensemble translates: give --source")
        _report(_language_model_results(checkpoints[0], reference, device), as_json=as_json)
        return
    # Before anything is translated: it may not be installed.
    import sacrebleu  # noqa: F401

    sources, references = _read_lines(source), _read_lines(reference)
    if len(sources) != len(references):
        numbers = f"{source} has {len(sources)} lines and {reference} {len(references)}"
        raise click.ClickException(f"{numbers}: they must be as many")
    if not sources:
        raise click.ClickException(f"{source} is empty")
    if output is not None and not output.absolute().parent.is_dir():
        raise click.ClickException(f"--output: there is no folder {output.parent}")
    opener: OpenSystem = _load("dragoman.systems", kind)
    if model is not None:
        opener = partial(open_server, model=model)
    with opener(
        *locations,
        source_language=source_language,
        target_language=target_language,
        beam_size=beam_size,
        length_penalty=length_penalty,
        device=device,
        precision=precision,
        shortlist=shortlist,
    ) as system:
        started_at = time.perf_counter()
        if calibrate:
            of_bundle: Any = system
            translations = of_bundle.calibrate(sources, references)
            click.echo(f"{bundle}: its confidence is calibrated", err=True)
        else:
            translations = [line for block in _blocks(system, sources) for line in block]
        seconds = time.perf_counter() - started_at
        description, details = system.description, system.details
    if length_penalty is not None:
        description += f", length penalty {length_penalty:g}"
    if output is not None:
        output.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    results: Results = {
        "system": description,
        "beam": beam_size,
        **({key: details.get(key) for key in DETAILS} if as_json else {}),
        **_scores(translations, references, tokenize),
        "sentences": len(sources),
        "seconds": round(seconds, 3),
    }
    _report(results, as_json=as_json)


def _refuse_options_of_translations(context: click.Context) -> None:
    """Raises UsageError where one is given: without a source it would do nothing."""
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        changes_nothing = parameter.name == "precision" and context.params["precision"] in ("auto", "fp32")
        if is_given and parameter.name not in OPTIONS_OF_LANGUAGE_MODELS and not changes_nothing:
            raise click.UsageError(f"{parameter.opts[0]} is of translations: give --source")


def _language_model_results(location: str, reference: Path, device: str) -> Results:
    """Perplexity of the reference's lines, but for empty ones."""
    lines = [line.strip() for line in _read_lines(reference) if line.strip()]
    if not lines:
        raise click.ClickException(f"{reference} is empty")
    with _load("dragoman.language_models", "checkpoint")(location, device=device) as model:
        started_at = time.perf_counter()
        try:
            perplexity, num_tokens, num_sentences = model.perplexity(lines)
        except ValueError as error:
            raise click.ClickException(f"{reference}: {error}") from None
        return {
            "system": model.description,
            "perplexity": round(perplexity, 4),
            "tokens": num_tokens,
            "sentences": num_sentences,
            "seconds": round(time.perf_counter() - started_at, 3),
        }


def _read_lines(path: Path) -> list[str]:
    """Lines end at a line feed and nowhere else: other separators may stand within a sentence."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path} is not UTF-8: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise click.ClickException(f"{path} can't be decompressed: {error}") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _load(group: str, kind: str) -> Any:
    """What another package registered. Raises ClickException where its extra is not installed."""
    (entry_point,) = entry_points(group=group, name=kind)
    return load(entry_point, f"--{kind}")


def _blocks(system: System, lines: list[str]) -> Iterator[list[str]]:
    console = Console(stderr=True)
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(lines))
        for start in range(0, len(lines), BLOCK_LINES):
            block = lines[start : start + BLOCK_LINES]
            # A line break within a translation would shift all that follow.
            yield [line.replace("\n", " ") for line in system.translate(block)]
            progress.advance(task, len(block))


def _scores(translations: list[str], references: list[str], tokenize: str) -> dict[str, float | str]:
    """Scores by name, each with sacreBLEU's signature of how it was counted."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    scores: dict[str, float | str] = {}
    cased, lower = BLEU(tokenize=tokenize), BLEU(tokenize=tokenize, lowercase=True)
    for name, metric in (("bleu", cased), ("bleu_lc", lower), ("chrf", CHRF())):
        scores[name] = round(metric.corpus_score(translations, [references]).score, 4)
        scores["signature" if name == "bleu" else f"{name}_signature"] = str(metric.get_signature())
    return scores


def _report(results: Results, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(results, ensure_ascii=False))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in results.items():
        table.add_row(name.replace("_", " "), f"{value:.2f}" if isinstance(value, float) else str(value))
    console_of_lines(highlight=False).print(table)
