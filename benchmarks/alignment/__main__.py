"""`python -m benchmarks.alignment`: options in, tables out."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from benchmarks.alignment.attention import COLUMNS as ATTENTION_COLUMNS
from benchmarks.alignment.attention import Attention
from benchmarks.alignment.sets import SETS, Task, prepare
from benchmarks.alignment.systems import PEERS, SHOWN, our_system
from benchmarks.alignment.textbook import compare_with_nltk
from benchmarks.environment import PeerMissingError
from benchmarks.machine import describe_machine
from benchmarks.options import CONTEXT, command_line, json_option, markdown_option
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Row, Table
from dragoman_training.alignment.chain import CHAIN
from dragoman_training.alignment.output.scoring import score_links

COLUMNS = [
    Column(key="set", header="set"),
    Column(key="system", header="aligner"),
    *(Column(key=method, header=method, format=".1f") for method in SHOWN),
    Column(key="seconds", header="seconds", format=".0f"),
    Column(key="cpu_seconds", header="CPU seconds", format=".0f"),
    Column(key="mebibytes", header="MiB", format=".0f"),
]
TEXTBOOK_COLUMNS = [
    Column(key="set", header="set"),
    Column(key="model", header="model"),
    Column(key="num_pairs", header="pairs", format="d"),
    Column(key="aer", header="AER", format=".1f"),
    Column(key="nltk_aer", header="AER of NLTK", format=".1f"),
    Column(key="seconds", header="seconds", format=".2f"),
    Column(key="nltk_seconds", header="seconds of NLTK", format=".2f"),
    Column(key="ratio", header="times as fast", format=".0f"),
]


_KNOWN: dict[str, list[str]] = {"sets": list(SETS), "models": list(CHAIN), "peers": [*PEERS, "nltk"]}


def _names(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    known = _KNOWN[parameter.name or ""]
    names = [name for name in value.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"there is no {unknown[0]!r}; there are {', '.join(known)}")
    return names


@click.command(context_settings=CONTEXT)
@click.option(
    "--data",
    default=Path("data"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of corpora and gold alignments.",
)
@click.option("--sets", default=",".join(SETS), show_default=True, callback=_names, help="Language pairs.")
@click.option("--models", default=",".join(CHAIN), show_default=True, callback=_names, help="Of ours.")
@click.option(
    "--peers",
    default=",".join([*PEERS, "nltk"]),
    show_default=True,
    callback=_names,
    help="What to compare with. Each is installed by pip into .venv-peers/ when it is first used.",
)
@click.option(
    "--bundle",
    "bundles",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A bundle whose model's attention is measured, too. Repeatable.",
)
@click.option(
    "--val",
    "with_val",
    is_flag=True,
    help="Measure attention on the corpora's val.*, too, against the links of IBM model 4. Takes minutes.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Take only so many pairs of each corpus.  [default: the whole corpus]",
)
@click.option(
    "--nltk-limit",
    default=2000,
    show_default=True,
    type=click.IntRange(min=1),
    help="NLTK is compared on so many pairs beside the test text: it takes long.",
)
@json_option
@markdown_option
def alignment(
    *,
    data: Path,
    sets: list[str],
    models: list[str],
    peers: list[str],
    bundles: tuple[Path, ...],
    with_val: bool,
    limit: int | None,
    nltk_limit: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Alignment error rate of each model on gold alignments, with time and memory, beside other aligners.

    All learn from the same words: a corpus and the test text itself, without its links.

    \b
      python -m benchmarks.alignment --data data --json runs/alignment.json --markdown runs/alignment.md
      python -m benchmarks.alignment --sets fr-en --models hmm,ibm4 --peers eflomal
      python -m benchmarks.alignment --sets "" --peers "" --bundle models/de-en/1
    """
    if with_val and not bundles:
        raise click.UsageError("--val measures the attention of bundles; name one with --bundle")
    machine = describe_machine(("numpy", "numba"))
    rows: list[Row] = []
    textbook: list[Row] = []
    left_out: dict[str, str] = {}
    systems = {name: PEERS[name] for name in peers if name in PEERS}
    systems |= {model: our_system(model) for model in models}
    progress = Progress(len(sets) * (len(systems) + ("nltk" in peers)) + len(bundles))
    with TemporaryDirectory() as folder:
        for name in sets:
            task = prepare(name, data, Path(folder), limit)
            for system, align in systems.items():
                try:
                    aligned = align(task, Path(folder))
                except PeerMissingError as error:
                    if system not in PEERS:
                        raise click.ClickException(str(error)) from error
                    left_out[system] = str(error)
                    progress.advance(f"{name}: {system} is left out")
                    continue
                scores: dict[str, float] = {
                    method: 100 * score_links(links, task.gold).aer for method, links in aligned.links.items()
                }
                rows.append({"set": name, "system": system, **scores, **vars(aligned.usage)})
                shown = " ".join(f"{method} {score:.1f}" for method, score in scores.items())
                progress.advance(f"{name}, {system}: AER {shown}; {aligned.usage.seconds:.0f} s")
            if "nltk" in peers:
                textbook += _textbook(
                    name, data, Path(folder), min(nltk_limit, limit or nltk_limit), left_out
                )
                progress.advance(f"{name}: NLTK")
        measured = Attention(data, Path(folder), with_val=with_val)
        attention: list[Row] = []
        for bundle in bundles:
            try:
                attention += measured.rows(bundle)
            except PeerMissingError as error:
                raise click.ClickException(str(error)) from error
            progress.advance(f"attention of {bundle}")
    tables = [
        Table(
            title="Alignment error rate",
            columns=COLUMNS,
            rows=rows,
            note="In percent, lower is better: of each direction, and of both made one. Time and memory are "
            "those of the training, in both directions.",
        )
    ]
    if textbook:
        tables.append(Table(title="Models 1 and 2 beside NLTK", columns=TEXTBOOK_COLUMNS, rows=textbook))
    if attention:
        note = "In percent: of each target word's strongest link, and of all links that a server gives."
        tables.append(Table(title="Attention", columns=ATTENTION_COLUMNS, rows=attention, note=note))
    results = {
        "attention": attention,
        "machine": machine,
        "rows": rows,
        "textbook": textbook,
        "left_out": left_out,
    }
    report = Report(command=command_line("benchmarks.alignment"), results=results, tables=tables)
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)
    for system, reason in left_out.items():
        click.echo(f"Left out: {system}: {reason}", err=True)


def _textbook(name: str, data: Path, folder: Path, limit: int, left_out: dict[str, str]) -> list[Row]:
    task: Task = prepare(name, data, folder, limit)
    try:
        return compare_with_nltk(task, folder)
    except PeerMissingError as error:
        left_out["nltk"] = str(error)
        return []


if __name__ == "__main__":
    alignment()
