"""All that aligns, on every set: aligners trained on the set's corpus, and what bundles' models look at."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.harness import LIMIT, Found, option, scenario, several
from benchmarks.measuring import MeasurementError, say
from benchmarks.report import Row, Table
from benchmarks.scenarios.alignment.attention import attention_rows, attention_table
from benchmarks.scenarios.alignment.sets import SETS, prepare
from benchmarks.scenarios.alignment.systems import METHODS, PEERS, our_system
from dragoman_training.alignment.links import score_links
from dragoman_training.alignment.training import CHAIN


@scenario(
    option("--data", Path("data"), "Folder of corpora and gold alignments."),
    several("--sets", tuple(SETS), "Language pairs.", SETS),
    several("--models", tuple(CHAIN), "Which of ours.", CHAIN),
    several("--peers", tuple(PEERS), "What to compare with; pip installs it into .venv-peers/ once.", PEERS),
    click.option(
        "--bundle",
        "bundles",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A bundle whose model's attention is measured, too. Repeatable.",
    ),
    LIMIT,
)
def command(
    *,
    data: Path,
    sets: list[str],
    models: list[str],
    peers: list[str],
    bundles: tuple[Path, ...],
    limit: int | None,
) -> Found:
    """Alignment error rate of each model on gold alignments, with time and memory, beside other aligners.

    All learn from the same words: a corpus and the test text itself, without its links.

    \b
      python -m benchmarks alignment --sets fr-en --models hmm,ibm4 --peers eflomal
      python -m benchmarks alignment --sets "" --bundle models/de-en/3
    """
    rows: list[Row] = []
    left_out: dict[str, str] = {}
    systems = {**{name: PEERS[name] for name in peers}, **{model: our_system(model) for model in models}}
    with TemporaryDirectory() as folder:
        for name in sets:
            task = prepare(name, data, Path(folder), limit)
            for system, align in systems.items():
                try:
                    aligned = align(task, Path(folder))
                except MeasurementError as error:
                    if system not in PEERS:
                        raise
                    left_out[system] = str(error)
                    say(f"{name}: {system} is left out: {error}")
                    continue
                scores: dict[str, float] = {
                    method: 100 * score_links(links, task.gold).aer for method, links in aligned.links.items()
                }
                rows.append({"set": name, "system": system, **scores, **vars(aligned.usage)})
                shown = " ".join(f"{method} {score:.1f}" for method, score in scores.items())
                say(f"{name}, {system}: AER {shown}; {aligned.usage.seconds:.0f} s")
    looked_at = [row for bundle in bundles for row in attention_rows(bundle, data)]
    table = Table(
        name="rows",
        title="Alignment error rate",
        columns=[
            ("set", "set"),
            ("system", "aligner"),
            *((method, method, ".1f") for method in METHODS),
            ("seconds", "seconds", ".0f"),
            ("cpu_seconds", "CPU seconds", ".0f"),
            ("mebibytes", "MiB", ".0f"),
        ],
        rows=rows,
        note="In percent, lower is better: of each direction, and of both made one. Time and memory are "
        "those of the training, in both directions.",
    )
    return Found(
        tables=[table, attention_table(looked_at)] if bundles else [table], facts={"left_out": left_out}
    )
