"""`dragoman load-test`: the highest load at which a running server's p99 stays within a limit."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from dragoman.async_client import AsyncClient
from dragoman.cli.options import connection_arguments, server_option, settings_options
from dragoman.errors import DragomanError
from dragoman.load import Answered, bisect, draw_arrivals, percentile, run_open_loop
from dragoman.settings import Settings

NUM_ALONE = 20
"""Texts that are translated one after the other first."""
MIN_ARRIVALS = 120
"""Fewest texts of a run, so that the 99th percentile is not the slowest: slow rates take longer for them."""
PRECISION, MAX_HALVINGS = 0.1, 3
MAX_LATE_SHARE = 0.1
"""Share of the limit that the generator itself may be behind before its figures are doubted."""
DAY_SECONDS = 86_400
_ROW = "{:>9} {:>8} {:>12} {:>9} {:>9} {:>9} {:>7}  {}"


@dataclass(frozen=True, kw_only=True)
class Rate:
    texts_per_second: float
    num_texts: int
    """Texts that were counted."""
    sentences_per_second: float
    words_per_second: float
    p50_ms: float
    p99_ms: float
    num_failed: int
    holds: bool
    """Whether the p99 stayed within the limit."""
    late_ms: float
    """Most that the generator was behind its schedule."""

    def row(self) -> str:
        """The rate as a line of the table."""
        figures = (self.texts_per_second, self.sentences_per_second, self.words_per_second)
        waits = (f"{self.p50_ms:.0f}", f"{self.p99_ms:.0f}", str(self.num_failed))
        rates = (f"{each:.1f}" for each in figures)
        return _ROW.format(*rates, self.num_texts, *waits, "yes" if self.holds else "no")


class LoadTest:
    """A client's texts, put on a server at one rate after the other."""

    def __init__(
        self, client: AsyncClient, texts: list[str], settings: Settings, *, p99_ms: float, seconds: float
    ) -> None:
        self._client = client
        self._texts = texts
        given = vars(settings).items()
        self._settings: dict[str, Any] = {name: value for name, value in given if value is not None}
        self._p99_ms = p99_ms
        self._seconds = seconds
        # A call that takes ten times the limit is as wrong as one that takes longer, and delays the next run.
        self._deadline = max(10 * p99_ms / 1000, 5.0)
        self._sentences: dict[int, int] = {}
        self.tried: list[Rate] = []

    async def alone(self) -> float:
        """The median seconds of texts one after the other. Raises DragomanError where one fails."""
        took = []
        for number in range(NUM_ALONE):
            began = time.perf_counter()
            await self._call(number % len(self._texts), timeout=60.0)
            took.append(time.perf_counter() - began)
        return percentile(took, 50)

    async def holds(self, rate: float) -> bool:
        """Whether the p99 stays within the limit where so many texts a second come."""
        seconds = max(self._seconds, MIN_ARRIVALS / rate)
        seed = len(self.tried)
        arrivals = draw_arrivals(rate=rate, seconds=seconds, num_texts=len(self._texts), seed=seed)
        answered = await run_open_loop(
            self._call,
            arrivals,
            failures=DragomanError,
            deadline_seconds=self._deadline,
            p99_seconds=self._p99_ms / 1000,
        )
        self.tried.append(self._rate(rate, answered))
        return self.tried[-1].holds

    async def _call(self, number: int, timeout: float | None = None) -> None:
        [translation] = await self._client.translate(
            [self._texts[number]], **self._settings, timeout_seconds=timeout or self._deadline
        )
        self._sentences[number] = translation.sentences

    def _rate(self, rate: float, answered: Answered) -> Rate:
        p99_ms = 1000 * percentile(answered.latencies, 99)
        sentences = list(self._sentences.values())
        words = sum(len(text.split()) for text in self._texts) / len(self._texts)
        return Rate(
            texts_per_second=rate,
            num_texts=len(answered.latencies),
            sentences_per_second=rate * sum(sentences) / len(sentences),
            words_per_second=rate * words,
            p50_ms=1000 * percentile(answered.latencies, 50),
            p99_ms=p99_ms,
            num_failed=answered.num_failed,
            holds=p99_ms <= self._p99_ms,
            late_ms=1000 * answered.late_seconds,
        )


@click.command(context_settings={"show_default": True})
@server_option
@settings_options
@click.option(
    "--p99-ms",
    default=300.0,
    type=click.FloatRange(min=1),
    help="Milliseconds within which 99 of 100 texts are to be answered.",
)
@click.option(
    "--seconds", default=10.0, type=click.FloatRange(min=0.1), help="Length of the run at each rate."
)
@click.option(
    "--cores", type=click.IntRange(min=1), help="Cores that the server has: adds what one of them does."
)
@click.option(
    "--sentences-per-day",
    type=click.IntRange(min=1),
    help="With --cores: says how many cores a load takes that comes evenly over the day.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with every rate.")
@click.argument("texts_path", metavar="TEXTS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def load_test(
    *,
    server: str,
    settings: Settings,
    p99_ms: float,
    seconds: float,
    cores: int | None,
    sentences_per_day: int | None,
    as_json: bool,
    texts_path: Path,
) -> None:
    """Find the highest rate of texts at which a running server answers 99 of 100 within a limit.

    TEXTS is a file of texts as callers send them, one a line. They come at random moments, whatever became of
    the others, at rates that are doubled until the limit breaks and then bisected. Nothing else should call
    the server meanwhile, and this command should have a core that the server does not use.

    \b
      dragoman load-test --from de --to en --p99-ms 300 --cores 2 --sentences-per-day 1000000 texts.de
    """
    if sentences_per_day and not cores:
        what = "--sentences-per-day is shared out over cores"
        raise click.UsageError(f"{what}: give --cores, how many the server has")
    texts = [line for line in texts_path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not texts:
        raise click.BadParameter(f"{texts_path} has no text in it; it needs one a line", param_hint="'TEXTS'")
    test, alone = asyncio.run(_run(server, texts, settings, p99_ms=p99_ms, seconds=seconds))
    found = summary(test.tried, alone_ms=1000 * alone, cores=cores, sentences_per_day=sentences_per_day)
    if found is None:
        raise click.ClickException(
            f"no rate that was tried keeps a p99 of {p99_ms:g} ms, and a text alone takes "
            f"{1000 * alone:.0f} ms: allow more with --p99-ms, or take a smaller --beam or shorter texts"
        )
    if as_json:
        click.echo(json.dumps({**found, "rates": [asdict(rate) for rate in test.tried]}, indent=2))
        return
    lines = (f"{name.replace('_', ' '):<36} {value:,.1f}" for name, value in found.items())
    click.echo("\n" + "\n".join(lines))
    if max(rate.late_ms for rate in test.tried if rate.holds) > MAX_LATE_SHARE * p99_ms:
        message = "The generator was late: what it waited for its own processor is in these figures."
        click.echo(message, err=True)


async def _run(
    server: str, texts: list[str], settings: Settings, *, p99_ms: float, seconds: float
) -> tuple[LoadTest, float]:
    """The test with all rates that it tried, each reported on stderr, and the seconds of a text alone."""
    async with AsyncClient(server, **connection_arguments()) as client:
        test = LoadTest(client, texts, settings, p99_ms=p99_ms, seconds=seconds)
        alone = await test.alone()
        if 1000 * alone > p99_ms:
            return test, alone
        head = ("texts/s", "sent./s", "words/s", "texts", "p50, ms", "p99, ms", "failed", "within the limit")
        click.echo(_ROW.format(*head), err=True)

        async def holds(rate: float) -> bool:
            is_within = await test.holds(rate)
            click.echo(test.tried[-1].row(), err=True)
            return is_within

        async for _ in bisect(holds, 1 / alone, precision=PRECISION, max_halvings=MAX_HALVINGS):
            pass
    return test, alone


def summary(
    tried: list[Rate], *, alone_ms: float, cores: int | None, sentences_per_day: int | None
) -> Mapping[str, float] | None:
    """What the highest rate within the limit says of a server and its cores; None without such a rate."""
    within = [rate for rate in tried if rate.holds]
    if not within:
        return None
    best = max(within, key=lambda rate: rate.texts_per_second)
    found = {
        "text_alone_ms": alone_ms,
        "texts_per_second": best.texts_per_second,
        "sentences_per_second": best.sentences_per_second,
        "words_per_second": best.words_per_second,
    }
    if cores:
        found["sentences_per_second_and_core"] = best.sentences_per_second / cores
        found["sentences_per_day_and_core"] = DAY_SECONDS * best.sentences_per_second / cores
    if cores and sentences_per_day:
        found["cores_for_the_day"] = sentences_per_day / found["sentences_per_day_and_core"]
    return found
