"""How well texts are cut into sentences, by language: cuts between sentences missed, and cuts within one."""

import gzip
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from dragoman_bundle.languages import writes_spaces

from benchmarks.harness import FOLDER, LIMIT, Found, option, scenario
from benchmarks.report import Row, Table
from dragoman_server.text.cut.segment import segment
from dragoman_server.text.options import Segmentation

CORPORA = {
    "de": "tatoeba-de-en/train.de",
    "en": "tatoeba-de-en/train.en",
    "es": "tatoeba-en-es/train.es",
    "fr": "tatoeba-en-fr/train.fr",
    **{
        language: f"more/tatoeba-more/en-{language}.{language}.gz"
        for language in ("pl", "tr", "sv", "ja", "zh")
    },
    "nl": "more/tatoeba-more/en-nl.nl",
    **{language: f"tests/ud-pud/pud.{language}" for language in ("cs", "it", "pt", "ru")},
}
"""By language, in the folder of all data; one sentence a line."""
LISTS = Path(__file__).parents[2] / "tests" / "server" / "sentences"
"""For some languages sentences that no dot in them ends: LANGUAGE.txt."""
_ENDS = tuple(".!?…。！？")
_CLOSERS = "\"'”“’»«）)」』"


@dataclass(frozen=True, kw_only=True)
class MissedCuts:
    """What became of pairs of sentences."""

    num_pairs: int
    missed: list[str]
    """The pairs that were not cut between the two, joined with a bar."""


@scenario(
    option("--data", Path("data"), "Folder of corpora; what it lacks is measured on its list alone."),
    option("--lists", LISTS, "Folder of sentences that must stay whole, LANGUAGE.txt.", type=FOLDER),
    LIMIT,
    option("--show", False, "Print every pair that was not cut and every sentence that was."),
)
def command(*, data: Path, lists: Path, limit: int | None, show: bool) -> Found:
    """Join the sentences of a corpus in pairs by one space, and count the pairs that are not cut there."""
    rows: list[Row] = []
    for language, name in CORPORA.items():
        row: dict[str, object] = {"language": language}
        faults: list[str] = []
        if (data / name).exists():
            began = time.process_time()
            counted = count_missed_cuts(read_lines(data / name), language, limit=limit)
            microseconds = (time.process_time() - began) / max(1, counted.num_pairs) * 1e6
            row |= {
                "num_pairs": counted.num_pairs,
                "num_missed": len(counted.missed),
                "microseconds": microseconds,
            }
            faults += counted.missed
        if (listed := lists / f"{language}.txt").exists():
            sentences = read_lines(listed)
            cut = wrong_cuts(sentences, language)
            row |= {"num_listed": len(sentences), "num_wrong": len(cut)}
            faults += cut
        rows.append(row)
        if show:
            click.echo("\n".join(f"{language}: {fault}" for fault in faults), err=True)
    columns = [
        ("language", "language"),
        ("num_pairs", "pairs", "d"),
        ("num_missed", "cuts missed", "d"),
        ("num_listed", "listed sentences", "d"),
        ("num_wrong", "of them cut", "d"),
        ("microseconds", "µs a pair", ".0f"),
    ]
    return Found(tables=[Table(name="rows", title="Cutting into sentences", columns=columns, rows=rows)])  # type: ignore[arg-type]


def read_lines(path: Path) -> list[str]:
    """The lines that hold a letter, of a plain or gzipped file."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = (line.strip() for line in text.decode("utf-8").splitlines())
    return [line for line in lines if any(map(str.isalpha, line))]


def count_missed_cuts(sentences: Sequence[str], language: str, *, limit: int | None = None) -> MissedCuts:
    """Joins each sentence with the next one in an order by chance, and looks for the cut.

    Leaves out a first one that has no mark at its end. `limit` is in sentences.
    """
    order = list(sentences)
    random.Random(1).shuffle(order)
    space = " " if writes_spaces(language) else ""
    num_pairs, missed = 0, []
    for first, second in zip(order[:limit:2], order[1:limit:2], strict=False):
        if first.rstrip(_CLOSERS).endswith(_ENDS):
            num_pairs += 1
            if len(first + space) not in _starts(first + space + second, language):
                missed.append(f"{first}|{second}")
    return MissedCuts(num_pairs=num_pairs, missed=missed)


def wrong_cuts(sentences: Sequence[str], language: str) -> list[str]:
    """The sentences that were cut."""
    return [sentence for sentence in sentences if len(_starts(sentence, language)) != 1]


def _starts(text: str, language: str) -> list[int]:
    return [start for start, _ in segment(text, language=language, mode=Segmentation.SENTENCE)]
