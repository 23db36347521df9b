"""Every scenario on the shipped model and a few lines, as a person runs it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from dragoman_bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.server.copying_bundle import write_bundle
from tests.server.text.answering import ANSWERS, Answer, shipped, translated

from benchmarks.peers import FOLDER
from benchmarks.scenarios.alignment.attention import attention_rows
from benchmarks.scenarios.peers.comparison import PEERS, command
from benchmarks.scenarios.peers.models import SHAPES, Shape, write_files
from benchmarks.scenarios.policy.simulation import Simulation
from benchmarks.scenarios.policy.workload import Length, Workload, read_lengths
from benchmarks.scenarios.text.lines import KINDS, NUM_LINES, Line, lines
from dragoman_export.options import ShortlistOptions
from dragoman_export.shortlist.lexicon import read_lexicon
from dragoman_server.engine.request import Priority
from dragoman_server.text.options import TextFormat, TranslationOptions

pytestmark = pytest.mark.long
Run = Callable[..., Any]
LINES = [
    ("Der Hund schläft im Garten.", "The dog is sleeping in the garden."),
    ("Ich habe heute keine Zeit.", "I don't have time today."),
    ("Wo ist der Bahnhof?", "Where is the train station?"),
    ("Meine Schwester liest ein Buch.", "My sister is reading a book."),
    ("Das Wetter ist schön.", "The weather is nice."),
    ("Sie wohnt in Berlin.", "She lives in Berlin."),
] * 4
ALIKE = [Length(source_tokens=16, steps=10)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Sentences; `reference` are their translations."""
    (tmp_path / "source").write_text("".join(f"{line}\n" for line, _ in LINES))
    return tmp_path / "source"


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    (tmp_path / "reference").write_text("".join(f"{line}\n" for _, line in LINES))
    return tmp_path / "reference"


def test_decode_translates_alike_with_one_engine_and_several(
    benchmark: Run, source: Path, reference: Path
) -> None:
    ran = benchmark(
        *("decode", "--input", source, "--reference", reference, "--beams", "1,2", "--threads", 2),
        *("--repeats", 2, "--systems", "torch_batched,engine_int8,engine_int8_wide,engine_fp16"),
    )
    rows = ran.results["rows"]
    cases = [(system, beam) for beam in (1, 2) for system in ("engine_int8", "engine_int8_wide")]
    assert [(row["system"], row["beam"]) for row in rows] == cases
    assert all(row["words_per_second"] > row["sentences_per_second"] > 0 for row in rows)
    scores = {(row["system"], row["beam"]): row["bleu"] for row in rows}
    assert min(scores.values()) > 30
    assert all(scores["engine_int8", beam] == scores["engine_int8_wide", beam] for beam in (1, 2))
    assert "--checkpoint" in ran.results["skipped"]["torch_batched, beam 1, threads 2"]
    assert "--device cuda" in ran.results["skipped"]["engine_fp16, beam 2, threads 2"]


def test_serve_measures_both_modes_at_every_load(benchmark: Run, source: Path) -> None:
    ran = benchmark(
        *("serve", "--input", source, "--beam", 2),
        *("--threads", 1, "--loads", "25,50", "--seconds", 0.5, "--repeats", 1),
        *("--saturation-sentences", 40, "--concurrency", 8, "--bulk-streams", 2),
    )
    capacity = {row["case"]: row["rate"] for row in ran.results["capacity"]}
    assert capacity.keys() == {"continuous", "request", "file", "offline", "job"}
    served = next(row["value"] for row in ran.results["aims"] if "a sentence a call" in row["name"])
    assert served == pytest.approx(capacity["continuous"] / capacity["offline"])
    rows = ran.results["rows"]
    cases = [(mode, load) for load in (0.25, 0.5) for mode in ("continuous", "request")]
    assert [(row["mode"], row["load"]) for row in rows] == cases
    alone, beside = ran.results["beside_bulk"]
    for row in (*rows, alone, beside):
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert row["failed"] == 0
        # Beam 2: no step has fewer rows.
        assert row["mean_rows"] >= 2
    assert (alone["streams"], alone["bulk_per_second"], beside["streams"]) == (0, 0, 2)
    assert beside["bulk_per_second"] > 0
    assert beside["mean_rows"] > alone["mean_rows"]


def test_text_measures_what_comes_through(benchmark: Run, tmp_path: Path) -> None:
    hard = [
        {"text": "Hallo {name}!", "kind": "placeholder", "must": [["{name}"]]},
        {"text": "<b>Hallo</b>", "kind": "markup", "must": [["<b>"]], "must_not": [], "format": "html"},
    ]
    (tmp_path / "hard").write_text("\n".join(map(json.dumps, hard)))
    (tmp_path / "de").write_text("Der Hund ist da.\nIch habe ein Haus.\n")
    (tmp_path / "en").write_text("The dog is there.\nI have a house.\n")
    files = ("--input", tmp_path / "de", "--reference", tmp_path / "en")
    options = ("--hard-texts", tmp_path / "hard", *files, "--repeats", 1, "--kinds", "url")
    found = benchmark("text", *options).results
    counted = [(row["kind"], row["num_lines"], row["num_on"]) for row in found["hard_texts"]]
    assert counted == [("placeholder", 1, 1), ("markup", 1, 1), ("all", 2, 2)]
    assert all(row["num_on"] == row["num_lines"] == 2 for row in (*found["kept"], *found["terms"]))
    lines = {(row["kind"], row["direction"], row["num_on"]) for row in found["lines"]}
    assert lines == {("url", direction, NUM_LINES) for direction in ("de-en", "en-de")}
    assert [row["protection"] for row in found["costs"]] == ["off", "on"] * 2
    assert all(row["milliseconds"] > 0 for row in found["costs"])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A corpus, and a test whose links somebody drew."""
    files = {
        "tatoeba-de-en/train.de": "Der Hund.\nDie Katze.\nHund, Katze!\n" * 10,
        "tatoeba-de-en/train.en": "The dog.\nThe cat.\nDog, cat!\n" * 10,
        "alignment/de-en-bicici/test.de": "hund und katze .\n",
        "alignment/de-en-bicici/test.en": "dog and cat .\n",
        "alignment/de-en-bicici/test.gold": "0-0 1-1 2-2 3p3\n",
    }
    for name, text in files.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(text)
    return tmp_path / "data"


def test_alignment_scores_and_times_each_model(benchmark: Run, data: Path) -> None:
    given = ("--data", data, "--sets", "de-en", "--models", "ibm1,ibm4", "--peers", "", "--limit", 20)
    rows = benchmark("alignment", *given).results["rows"]
    assert [row["system"] for row in rows] == ["ibm1", "ibm4"]
    assert rows[1]["grow-diag-final-and"] == 0
    assert all(row["cpu_seconds"] > 0 and row["mebibytes"] > 10 for row in rows)


@pytest.mark.parametrize("languages", ["de-en", "en-de"])
@pytest.mark.parametrize(("gold", "error"), [("0-0 1-1 2p2\n", 0.0), ("0-1 1-0\n", 100.0)])
def test_alignment_of_attention_is_held_against_links_that_people_drew(
    data: Path, tmp_path: Path, gold: str, error: float, languages: str
) -> None:
    for name, text in (("gold", gold), ("de", "ab cd .\n"), ("en", "ab  cd .\n")):
        (data / "alignment" / "de-en-bicici" / f"test.{name}").write_text(text)
    [row] = attention_rows(write_bundle(tmp_path / "models", f"{languages}/1", languages), data)
    assert (row["set"], row["model"], row["pairs"]) == ("de-en", f"{languages}/1", 1)
    assert row["strongest"] == row["served"] == pytest.approx(error)


def test_policy_is_the_same_every_time_and_by_hand() -> None:
    some = Workload(name="some", seconds=2.0, callers_per_second=50.0, waiting_bulk=20)
    first, second = (Simulation(some, read_lengths(), 1).run() for _ in range(2))
    assert first == second != Simulation(some, read_lengths(), 2).run()
    everybody = Simulation(Workload(name="all", seconds=0.0, offline=100), ALIKE, 1).run()
    assert everybody.num_answered == {Priority.INTERACTIVE: 100, Priority.BULK: 0}
    assert len(everybody.call_seconds) == everybody.num_encoded == 100
    alone = Simulation(Workload(name="one", seconds=100.0, callers_per_second=0.1), ALIKE, 1).run()
    # By hand: an encoding 0.4 + 16 * 0.082, a regrouping 0.235, and ten steps of 0.645 each, in milliseconds.
    assert min(alone.call_seconds) == pytest.approx((1.712 + 0.235 + 10 * 0.645) / 1000)


@pytest.mark.skipif(
    not (FOLDER / "engines" / "ready").is_file(),
    reason="no peers: `python -m benchmarks peers` installs them",
)
def test_peers_are_one_table_whose_results_are_kept_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "width": 32, "feed_forward": 64, "heads": 4}
    tiny = Shape(**sizes, vocabulary=900, is_ssru=True, shortlist=True, growth=2)
    monkeypatch.setitem(SHAPES, "tiny", tiny)
    given = ["--sizes", "tiny", "--models", tmp_path / "models", "--sentences", 6, "--alone", 2]
    given += ["--seconds", 0.5, "--repeats", 2, "--minutes", 0.01]
    done = CliRunner().invoke(command, [*map(str, given), "--json", str(tmp_path / "found.json")])
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    offline = [("a file", 4), ("alone", 4), ("a file", 1), ("alone", 1)]
    assert [(row["what"], row["beam"]) for row in rows[:4]] == offline
    assert all(row["over_ctranslate2"] > 0 and row["over_marian"] > 0 for row in rows[:4])
    assert ["over_fxtranslate" in row for row in rows[:4]] == [False, False, True, True]
    of_offline = {row["what"] for row in rows if row.get("of_offline", 0) > 0}
    assert of_offline == {"served, a caller", "served, a job"}
    others = {row["what"] for row in rows[4:]} - of_offline
    assert others == {"served, many callers", "served at 50% load", "memory"}
    # The time was over at once: each was done once.
    cells = [json.loads(line) for line in (tmp_path / "models" / "cells.jsonl").read_text().splitlines()]
    values = [row[system] for row in rows for system in ("engine", *PEERS) if system in row]
    assert sorted(cell["value"] for cell in cells) == sorted(values)


def test_both_forms_of_a_random_shortlist_are_the_same(tmp_path: Path) -> None:
    write_files(tmp_path, Shape(width=32, feed_forward=64, vocabulary=700, shortlist=True))
    tokenizer = Tokenizer.load(tmp_path / "vocab.spm")
    one, other = (
        read_lexicon(tmp_path / name, tokenizer, tokenizer, ShortlistOptions(), lambda line: None)
        for name in ("lex.bin", "vmap.txt")
    )
    for source_id in range(2, 700):
        np.testing.assert_array_equal(one.candidates([[source_id]])[0], other.candidates([[source_id]])[0])


BY_THE_MODEL = ("markup", "message", "quantity", "reference", "sign")
"""Kinds of which lines come through by what a model answers, and not whatever it answers."""
KEPT = [kind for kind in KINDS if kind not in BY_THE_MODEL]


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_lines_of_all_kinds_come_through_whatever_a_model_answers(kind: str, answer: Answer) -> None:
    chosen = list(lines(kind, ("de", "en")))
    assert len({line.text for line in chosen}) == NUM_LINES
    assert lost_of(chosen, shipped(), answer) == []


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("en", "es"), ("en", "nl"), ("fr", "de")])
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_lines_come_through_between_other_languages(languages: tuple[str, str], answer: Answer) -> None:
    source, target = languages
    bundle = shipped()
    manifest = replace(bundle.manifest, source_language=source, target_language=target)
    chosen = [line for kind in KEPT for line in list(lines(kind, languages))[::14]]
    assert lost_of(chosen, replace(bundle, manifest=manifest), answer) == []


def lost_of(chosen: Sequence[Line], bundle: Bundle, answer: Answer) -> list[tuple[str, str]]:
    """The lines that do not come through, with what came of them."""
    lost = []
    for line in chosen:
        form = TextFormat.HTML if line.is_html else TextFormat.PLAIN
        options = TranslationOptions(beam_size=1, length_penalty=1.0, text_format=form)
        found = translated(line.text, bundle, options, answer).text
        other = translated(line.same_as, bundle, options, answer).text if line.same_as else None
        if not line.passes(found, other):
            lost.append((line.text, found))
    return lost
