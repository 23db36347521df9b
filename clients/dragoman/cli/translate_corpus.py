"""`dragoman translate-corpus`: a whole corpus by the engines of a Ray cluster, resumable."""

import logging
import time
from pathlib import Path
from typing import Literal

import click

from dragoman.jobs.errors import JobError

REPORT_SECONDS = 10.0


@click.command(name="translate-corpus")
@click.option(
    "--bundle",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The bundle that translates. Every machine must have it under this path.",
)
@click.option(
    "--ray",
    "address",
    envvar="RAY_ADDRESS",
    metavar="ADDRESS",
    help='The cluster: "auto" from one of its machines, ray://HOST:10001 from elsewhere.  [default: one that '
    "is started here, of this machine alone]",
)
@click.option(
    "--actors",
    type=click.IntRange(min=1),
    help="Engines, each on a core or a GPU of its own.  [default: as many as the cluster has room for]",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "jsonl", "parquet"]),
    help="What IN and OUT hold.  [default: as their names say, .jsonl, .parquet, or else text]",
)
@click.option(
    "--column",
    default="text",
    show_default=True,
    help="Key or column of the texts, of JSON lines and Parquet.",
)
@click.option("--beam", type=click.IntRange(min=1), help="Beam size.  [default: the bundle's]")
@click.option("--length-penalty", type=float, help="Exponent of the length penalty.  [default: the bundle's]")
@click.option(
    "--segmentation", type=click.Choice(["sentence", "line"]), default="sentence", show_default=True
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "int8", "fp16"]),
    default="auto",
    show_default=True,
    help="Which of the bundle's graphs run.",
)
@click.option(
    "--part-texts",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Lines or rows that an actor takes at a time, and that are done twice at most where one is lost.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUT where it exists.")
@click.option(
    "--restart", is_flag=True, help="Begin anew; drops what an earlier run of the same OUT has done."
)
@click.argument("source", metavar="IN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
def translate_corpus(
    *,
    bundle: Path,
    address: str | None,
    actors: int | None,
    kind: Literal["text", "jsonl", "parquet"] | None,
    column: str,
    beam: int | None,
    length_penalty: float | None,
    segmentation: Literal["sentence", "line"],
    device: Literal["cpu", "cuda"],
    precision: Literal["auto", "fp32", "int8", "fp16"],
    part_texts: int,
    overwrite: bool,
    restart: bool,
    source: Path,
    output: Path,
) -> None:
    """Translate the corpus IN into OUT by all machines of a Ray cluster, without a server.

    Text has a text a line; JSON lines have a "text" and come back with a "translation"; so do the rows of
    Parquet. Each of Ray's actors has an engine, and takes a part at a time. All machines share the folders of
    IN, OUT and the bundle.

    OUT appears when it is complete; until then the parts lie in OUT.parts. A run that was stopped, however
    suddenly, goes on when the same command is called again. A line that holds no text is recorded in
    OUT.errors.jsonl.

    \b
      dragoman translate-corpus --bundle models/de-en/1 corpus.de corpus.en
      dragoman translate-corpus --bundle /shared/de-en/1 --ray auto /shared/in.parquet /shared/out.parquet

    Exit code 3: OUT is complete, and some texts failed.
    """
    import ray.data
    from ray.exceptions import RayError

    from dragoman.ray.corpus import CorpusJob
    from dragoman.ray.engine import EngineOptions

    job = CorpusJob(
        source,
        output,
        bundle=bundle,
        options=EngineOptions(
            beam_size=beam,
            length_penalty=length_penalty,
            segmentation=segmentation,
            device=device,
            precision=precision,
        ),
        kind=kind,
        column=column,
        part_texts=part_texts,
        actors=actors,
    )
    # Its bars and its log lines would stand between ours.
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    progress = _Progress()
    try:
        summary = job.run(progress, overwrite=overwrite, restart=restart)
    except KeyboardInterrupt:
        click.echo(f"Interrupted after {progress}. The same command goes on from there.", err=True)
        raise click.exceptions.Exit(130) from None
    except RayError as error:
        cause = str(error).strip().splitlines()[-1]
        raise JobError(
            f"Ray stopped after {progress}: {cause}; the same command goes on from there"
        ) from error
    finally:
        ray.shutdown()
    failures = f", of which {summary.failed} failed: see {summary.errors}" if summary.failed else ""
    click.echo(f"{summary.texts} texts{failures}", err=True)
    if summary.failed:
        raise click.exceptions.Exit(3)


class _Progress:
    """A line now and then, on a terminal and into a file alike."""

    def __init__(self) -> None:
        self._parts = self._done = 0
        self._reported_at = time.monotonic()

    def __str__(self) -> str:
        return f"{self._done} of {self._parts} parts"

    def on_start(self, *, parts: int, done: int) -> None:
        self._parts, self._done = parts, done
        if done:
            click.echo(f"Going on after {self}.", err=True)

    def on_part(self) -> None:
        self._done += 1
        if time.monotonic() - self._reported_at >= REPORT_SECONDS:
            self._reported_at = time.monotonic()
            click.echo(f"{self}", err=True)
