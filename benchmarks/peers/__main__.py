"""`python -m benchmarks.peers`: options in, tables out."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.engines import SystemMissingError
from benchmarks.environment import PeerMissingError
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, summarize
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    input_option,
    json_option,
    limit_option,
    markdown_option,
    repeats_option,
    threads_option,
)
from benchmarks.peers import ours
from benchmarks.peers.marian_models import CTRANSLATE2, SIZES
from benchmarks.peers.same_weights import measure_speed, prepare
from benchmarks.peers.served import measure_memory, measure_served
from benchmarks.peers.tables import (
    compare,
    memory_table,
    peer_table,
    ratio_table,
    same_weights_table,
    served_table,
)
from benchmarks.peers.toolkits import LEFT_OUT, TOOLKITS
from benchmarks.peers.worker import Decoded, running_worker
from benchmarks.progress import Progress
from benchmarks.report import Report, Table
from dragoman_server.sizing.child_server import ServerError

SPEED, SERVED, MEMORY = "speed", "served", "memory"
"""What is measured on the same weights."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A system in one setting."""

    system: str
    settings: str

    def __str__(self) -> str:
        return f"{self.system}, {self.settings}" if self.settings else self.system


def _chosen_peers(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    names = [name for name in value.split(",") if name]
    if unknown := [name for name in names if name not in TOOLKITS]:
        raise click.BadParameter(f"there is no peer {unknown[0]!r}; there are {', '.join(TOOLKITS)}")
    return names


def _chosen_sizes(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    names = [name for name in value.split(",") if name]
    if unknown := [name for name in names if name not in SIZES]:
        raise click.BadParameter(f"there is no size {unknown[0]!r}; there are {', '.join(SIZES)}")
    return names


def _compare_on_same_weights(
    what: str,
    names: Sequence[str],
    corpus: Corpus,
    text: Path,
    folder: Path,
    *,
    threads: int,
    repeats: int,
    seconds: float,
    exports: bool,
    shortlist: bool,
) -> tuple[dict[str, object], list[Table]]:
    """What goes into the report: results and tables."""
    rows: list[dict[str, object]] = []
    try:
        for name in names:
            click.echo(f"{name}: {SIZES[name]}: making the models", err=True)
            prepared = prepare(
                name, corpus, text, folder, threads=threads, exports=exports, shortlist=shortlist
            )
            if what == SPEED:
                rows += measure_speed(prepared, threads=threads, repeats=repeats)
            elif what == SERVED:
                rows += measure_served(prepared, threads=threads, repeats=repeats, seconds=seconds)
            else:
                rows += measure_memory(prepared, threads=threads, repeats=repeats)
    except (PeerMissingError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    make_table = {SPEED: same_weights_table, SERVED: served_table, MEMORY: memory_table}[what]
    results: dict[str, object] = {
        "input": corpus.name,
        "sentences": len(corpus.sources),
        "sizes": {name: asdict(SIZES[name]) for name in names},
        "peers": {"ctranslate2": CTRANSLATE2},
        "repeats": repeats,
        "rows": rows,
    }
    return results, [make_table(rows, corpus.name, len(corpus.sources), repeats)]


@click.command(context_settings=CONTEXT)
@bundle_option
@input_option
@limit_option
@beam_option
@threads_option
@click.option(
    "--peers",
    default=",".join(TOOLKITS),
    show_default=True,
    callback=_chosen_peers,
    help="What to compare with. Each is installed by pip into .venv-peers/ when it is first used.",
)
@click.option(
    "--same-weights",
    default="",
    callback=_chosen_sizes,
    help="Instead of all that, compare with CTranslate2 on checkpoints of these sizes, with random weights: "
    f"any of {', '.join(SIZES)}, with commas between.",
)
@click.option(
    "--measure",
    "what",
    default=SPEED,
    show_default=True,
    type=click.Choice([SPEED, SERVED, MEMORY]),
    help="With --same-weights: target tokens a second of a file and of sentences alone, beams 4 and 1; "
    "latency of callers at 25, 50 and 75% of the load that our server bears, beam 4; or memory of both "
    "servers, of one thread and of --threads, beam 4.",
)
@click.option(
    "--shortlist",
    is_flag=True,
    help="With --same-weights, both decode with a shortlist of the same lexicon, a random one.",
)
@click.option(
    "--seconds",
    default=15.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="With --measure served, length of one run at one load.",
)
@click.option(
    "--models",
    default=Path("runs/same-weights"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="With --same-weights, where the checkpoints are kept.",
)
@click.option(
    "--export/--no-export",
    "exports",
    default=True,
    help="With --same-weights, export them anew, or measure the bundles that a run before has exported.",
)
@repeats_option
@json_option
@markdown_option
def peers(
    *,
    bundle: Path,
    source: Path,
    limit: int | None,
    beam: int,
    threads: int,
    peers: list[str],
    same_weights: list[str],
    what: str,
    shortlist: bool,
    seconds: float,
    models: Path,
    exports: bool,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Compare the engine with other toolkits: the same input, beam and number of threads, in turn.

    The toolkits get models with random weights and of a vocabulary as large as the bundle's; each is made to
    decode as many tokens a sentence as the engine does on average.

    \b
      python -m benchmarks.peers --bundle models/de-en/1 --json peers.json --markdown peers.md
      python -m benchmarks.peers --bundle models/de-en/1 --peers ctranslate2 --limit 100
      python -m benchmarks.peers --same-weights small,base,opus --limit 120
      python -m benchmarks.peers --same-weights opus --limit 120 --shortlist
      python -m benchmarks.peers --same-weights small --measure served --threads 1
    """
    machine = describe_machine()
    corpus = read_corpus(source, None, limit)
    if same_weights:
        found, tables = _compare_on_same_weights(
            what,
            same_weights,
            corpus,
            source,
            models,
            threads=threads,
            repeats=repeats,
            seconds=seconds,
            exports=exports,
            shortlist=shortlist,
        )
        Report(
            command=command_line("benchmarks.peers"),
            results={"machine": machine, **found},
            tables=tables,
        ).publish(Console(), json_path=json_path, markdown_path=markdown_path)
        return
    try:
        opened = open_bundle(bundle)
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    manifest = opened.manifest
    left_out = dict(LEFT_OUT)
    cases: dict[Case, Callable[[], Decoded]] = {}
    for system in ours.SYSTEMS:
        try:
            decoder = ours.open_system(opened, system)
        except SystemMissingError as error:
            left_out[system] = str(error)
            continue
        case = Case(system=system, settings="")
        cases[case] = partial(ours.translate, opened, decoder, corpus.sources, beam, threads)
    if not cases:
        raise click.ClickException(f"{bundle} has no int8 graphs to compare")
    warmed = [run() for run in cases.values()]
    steps = max(1, round(warmed[0].tokens / len(corpus.sources)))
    task: Mapping[str, object] = {
        "sentences": opened.source_tokenizer.encode_ids(corpus.sources),
        "vocabulary": manifest.target_vocabulary,
        "steps": steps,
    }
    versions: dict[str, object] = {}
    sizes: dict[str, Mapping[str, object]] = {}
    with ExitStack() as stack:
        for name in peers:
            toolkit = TOOLKITS[name](bundle=bundle, beam=beam, threads=threads)
            try:
                worker, answer = stack.enter_context(
                    running_worker(
                        toolkit.install(), toolkit.script, {**task, **toolkit.sizes}, toolkit.environment
                    )
                )
                for setting in toolkit.settings:
                    worker.decode(setting)
                    shown = ", ".join(f"{key} {value}" for key, value in setting.items() if key != "beam")
                    cases[Case(system=name, settings=shown)] = partial(worker.decode, setting)
            except PeerMissingError as error:
                left_out[name] = str(error)
                continue
            versions[name], sizes[name] = answer, toolkit.sizes
        progress = Progress(len(cases) * repeats)
        for name, reason in left_out.items():
            progress.say(f"left out: {name}: {reason}")

        def on_done(repeat: int, case: Case, result: Decoded) -> None:
            progress.advance(f"{case}: {result.tokens / result.seconds:,.0f} target tokens/s")

        runs = interleave(cases, repeats, on_done)
    rows: list[dict[str, object]] = []
    for case, results in runs.items():
        speed = summarize([result.tokens / result.seconds for result in results])
        rows.append(
            {
                "system": case.system,
                "settings": case.settings,
                "beam": beam,
                "threads": threads,
                "tokens_per_second": speed.median,
                "sentences_per_second": speed.median * len(corpus.sources) / results[0].tokens,
                "tokens": results[0].tokens,
                "spread": speed.spread,
                "repeats": list(speed.values),
            }
        )
    ratios = compare(rows)
    Report(
        command=command_line("benchmarks.peers"),
        results={
            "machine": machine,
            "bundle": manifest.key,
            "input": corpus.name,
            "sentences": len(corpus.sources),
            "beam": beam,
            "threads": threads,
            "steps_of_peers": steps,
            "peers": versions,
            "sizes": sizes,
            "repeats": repeats,
            "rows": rows,
            "ratios": ratios,
            "left_out": left_out,
        },
        tables=[
            peer_table(rows, corpus.name, len(corpus.sources), repeats, beam, sizes),
            ratio_table(ratios),
        ],
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


if __name__ == "__main__":
    peers()
