"""`python -m benchmarks.peers --same-weights` with a model of one layer, and its lexicon."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.export.marian_checkpoint import write_marian

from benchmarks.environment import FOLDER
from benchmarks.peers.__main__ import peers
from benchmarks.peers.same_weights import lexicon
from benchmarks.peers.same_weights.lexicon import write_lexicon
from benchmarks.peers.same_weights.marian_models import SIZES, MarianSize
from benchmarks.peers.same_weights.served import Setting, settings_of_server
from dragoman_export.from_hf import load_marian
from dragoman_export.shortlist.builder import ShortlistOptions
from dragoman_export.shortlist.lexicon import read_lexicon

TINY = MarianSize(encoder_layers=1, decoder_layers=1, width=32, feed_forward=64, heads=4, vocabulary=900)


def test_a_random_lexicon_gives_the_engine_what_its_lines_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexicon, "NUM_COMMON", 7)
    monkeypatch.setattr(lexicon, "NUM_TARGETS", 5)
    write_marian(tmp_path / "checkpoint")
    subject = load_marian(str(tmp_path / "checkpoint"))
    source, target = subject.source_tokenizer, subject.target_tokenizer
    pieces = [source.piece(id_) for id_ in range(source.vocabulary_size)]
    specials = {target.eos_id, target.unk_id, target.pad_id, target.bos_id}
    write_lexicon(tmp_path / "vmap.txt", pieces, sorted(specials))
    first, *rows = [line.split("\t") for line in (tmp_path / "vmap.txt").read_text().splitlines()]
    assert first[0] == ""
    assert len(first[1].split(" ")) == 7
    assert len(rows) == len(pieces) - len(specials)
    for piece, targets in rows:
        assert piece in targets.split(" ")
        assert len(set(targets.split(" "))) == len(targets.split(" ")) == 6
    read = read_lexicon(tmp_path / "vmap.txt", source, target, ShortlistOptions(), lambda line: None)
    for piece, targets in rows:
        id_ = source.id_of(piece)
        assert id_ is not None
        own = read.target_N[read.first_V[id_] : read.first_V[id_ + 1]]
        kept = {*own.tolist(), *read.always.tolist()}
        assert {target.id_of(each) for each in targets.split(" ")} <= kept


@pytest.mark.parametrize(("threads", "shares"), [(1, {(1, 1)}), (2, {(2, 1), (1, 2)})])
def test_a_server_of_ctranslate2_may_have_workers_or_threads(
    threads: int, shares: set[tuple[int, int]]
) -> None:
    found = list(settings_of_server(threads))
    assert {(each.workers, each.threads_per_worker) for each in found} == shares
    assert str(Setting(workers=2, threads_per_worker=1, batch=8)) == "2 x 1, 8"


@pytest.fixture
def tiny(tmp_path: Path, toy: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Runs the command with a model of one layer."""
    monkeypatch.setitem(SIZES, "tiny", TINY)

    def run(*arguments: object) -> dict[str, Any]:
        asked = [
            "--same-weights",
            "tiny",
            "--input",
            toy.source,
            "--models",
            tmp_path / "models",
            "--limit",
            6,
        ]
        asked += [
            "--threads",
            1,
            "--repeats",
            1,
            "--json",
            tmp_path / "found.json",
            "--shortlist",
            *arguments,
        ]
        done = CliRunner().invoke(peers, [*map(str, asked)])
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
        return found

    return run


@pytest.mark.skipif(
    not (FOLDER / "ctranslate2-marian" / "ready").is_file(),
    reason="no CTranslate2: `python -m benchmarks.peers --same-weights small` installs it",
)
def test_both_systems_decode_served_and_not_with_a_shortlist(tiny: Callable[..., dict[str, Any]]) -> None:
    speed = tiny()["rows"]
    assert [(row["input"], row["beam"]) for row in speed] == [
        *(("a file", 4), ("a sentence alone", 4)),
        *(("a file", 1), ("a sentence alone", 1)),
    ]
    assert all(row["shortlist"] and row["ratio"] > 0 for row in speed)
    served = tiny("--no-export", "--measure", "served", "--seconds", 0.5)["rows"]
    assert [(row["system"], row["load"]) for row in served] == [
        (system, load) for load in (0.25, 0.5, 0.75) for system in ("engine", "ctranslate2")
    ]
    for row in served:
        assert row["failed"] == 0
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
    memory = tiny("--no-export", "--measure", "memory")["rows"]
    assert [(row["threads"], row["system"]) for row in memory] == [(1, "engine"), (1, "ctranslate2")]
    assert all(row["ready"] > 0 and row["after"] > 0 for row in memory)
