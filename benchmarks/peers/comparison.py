"""The engine beside other toolkits: everything measured in turn, and what goes into the report."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import click
from dragoman_bundle import Bundle

from benchmarks.corpus import Corpus
from benchmarks.engines import SystemMissingError
from benchmarks.environment import PeerMissingError
from benchmarks.measuring import interleave, summarize
from benchmarks.peers import ours
from benchmarks.peers.tables import compare, peer_table, ratio_table
from benchmarks.peers.toolkits import LEFT_OUT, TOOLKITS, Toolkit
from benchmarks.peers.worker import Decoded, running_worker
from benchmarks.progress import Progress
from benchmarks.report import Table


@dataclass(frozen=True, kw_only=True)
class Case:
    """A system in one setting."""

    system: str
    settings: str

    def __str__(self) -> str:
        return f"{self.system}, {self.settings}" if self.settings else self.system


Cases = dict[Case, Callable[[], Decoded]]
"""What translates the input once, by its system and setting."""


def compare_toolkits(
    bundle: Bundle, corpus: Corpus, peers: Sequence[str], *, beam: int, threads: int, repeats: int
) -> tuple[dict[str, object], list[Table]]:
    """Results and tables. Raises ClickException for a bundle that has nothing to compare."""
    left_out = dict(LEFT_OUT)
    cases = _our_cases(bundle, corpus, beam, threads, left_out)
    if not cases:
        raise click.ClickException(f"{bundle.path} has no int8 graphs to compare")
    warmed = [run() for run in cases.values()]
    steps = max(1, round(warmed[0].tokens / len(corpus.sources)))
    task: Mapping[str, object] = {
        "sentences": bundle.source_tokenizer.encode_ids(corpus.sources),
        "vocabulary": bundle.manifest.target_vocabulary,
        "steps": steps,
    }
    versions: dict[str, object] = {}
    sizes: dict[str, Mapping[str, object]] = {}
    with ExitStack() as stack:
        for name in peers:
            toolkit = TOOLKITS[name](bundle=bundle.path, beam=beam, threads=threads)
            try:
                versions[name] = _add_peer(name, toolkit, task, cases, stack)
            except PeerMissingError as error:
                left_out[name] = str(error)
                continue
            sizes[name] = toolkit.sizes
        runs = _run(cases, repeats, left_out)
    rows = [_row(case, results, len(corpus.sources), beam, threads) for case, results in runs.items()]
    ratios = compare(rows)
    results: dict[str, object] = {
        "bundle": bundle.manifest.key,
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
    }
    return results, [
        peer_table(rows, corpus.name, len(corpus.sources), repeats, beam, sizes),
        ratio_table(ratios),
    ]


def _our_cases(bundle: Bundle, corpus: Corpus, beam: int, threads: int, left_out: dict[str, str]) -> Cases:
    """Our systems; what the bundle has no graphs for is noted in `left_out`."""
    cases: Cases = {}
    for system in ours.SYSTEMS:
        try:
            decoder = ours.open_system(bundle, system)
        except SystemMissingError as error:
            left_out[system] = str(error)
            continue
        case = Case(system=system, settings="")
        cases[case] = partial(ours.translate, bundle, decoder, corpus.sources, beam, threads)
    return cases


def _add_peer(
    name: str, toolkit: Toolkit, task: Mapping[str, object], cases: Cases, stack: ExitStack
) -> object:
    """Starts a peer and adds all of its settings, each tried once. Returns what it says of itself."""
    worker, answer = stack.enter_context(
        running_worker(toolkit.install(), toolkit.script, {**task, **toolkit.sizes}, toolkit.environment)
    )
    for setting in toolkit.settings:
        worker.decode(setting)
        shown = ", ".join(f"{key} {value}" for key, value in setting.items() if key != "beam")
        cases[Case(system=name, settings=shown)] = partial(worker.decode, setting)
    return answer


def _run(cases: Cases, repeats: int, left_out: Mapping[str, str]) -> dict[Case, list[Decoded]]:
    progress = Progress(len(cases) * repeats)
    for name, reason in left_out.items():
        progress.say(f"left out: {name}: {reason}")

    def on_done(repeat: int, case: Case, result: Decoded) -> None:
        progress.advance(f"{case}: {result.tokens / result.seconds:,.0f} target tokens/s")

    return interleave(cases, repeats, on_done)


def _row(
    case: Case, results: Sequence[Decoded], num_sentences: int, beam: int, threads: int
) -> dict[str, object]:
    speed = summarize([result.tokens / result.seconds for result in results])
    return {
        "system": case.system,
        "settings": case.settings,
        "beam": beam,
        "threads": threads,
        "tokens_per_second": speed.median,
        "sentences_per_second": speed.median * num_sentences / results[0].tokens,
        "tokens": results[0].tokens,
        "spread": speed.spread,
        "repeats": list(speed.values),
    }
