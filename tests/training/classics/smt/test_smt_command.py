"""`dragoman smt` on a small language of two orders of words, and what users do wrong."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dragoman_training.classics.smt.cli import smt
from dragoman_training.classics.smt.decoder import FEATURES, Weights
from dragoman_training.classics.smt.system import load_system
from dragoman_training.classics.smt.tuning import bleu, count_matches, tune_system

NOUNS = [("Hund", "dog"), ("Mann", "man"), ("Baum", "tree"), ("Vogel", "bird"), ("Fisch", "fish")]
ADJECTIVES = [("alter", "old"), ("neuer", "new"), ("kleiner", "small"), ("roter", "red")]
PROGRAM = "from dragoman_training.classics.smt.cli import smt; smt()"
VERBS = [("schläft", "sleeps"), ("ruft", "calls"), ("fällt", "falls")]


def write_corpus(folder: Path, name: str, num_pairs: int, seed: int) -> tuple[Path, Path]:
    """In German the verb stands before "heute", in English behind "today" and the subject."""
    random = np.random.default_rng(seed)
    source, target, lines = folder / f"{name}.de", folder / f"{name}.en", []
    for _ in range(num_pairs):
        noun, adjective, verb = (words[random.integers(len(words))] for words in (NOUNS, ADJECTIVES, VERBS))
        if random.random() < 0.5:
            german = f"Heute {verb[0]} ein {adjective[0]} {noun[0]}."
            english = f"Today a {adjective[1]} {noun[1]} {verb[1]}."
        else:
            german = f"Ein {adjective[0]} {noun[0]} {verb[0]}."
            english = f"A {adjective[1]} {noun[1]} {verb[1]}."
        lines.append((german, english))
    source.write_text("".join(f"{german}\n" for german, _ in lines), "utf-8")
    target.write_text("".join(f"{english}\n" for _, english in lines), "utf-8")
    return source, target


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(smt, [str(argument) for argument in arguments], input=text)


def error_of(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, ValueError), result.output
    assert not result.stdout
    return str(result.exception)


def train(folder: Path, *more: object) -> tuple[Path, Result]:
    source, target = write_corpus(folder, "train", 60, 1)
    valid_source, valid_target = write_corpus(folder, "val", 12, 2)
    result = run(
        "train", "--source", source, "--target", target, "--out", folder / "system", "--rounds", 2,
        "--valid-source", valid_source, "--valid-target", valid_target, *more,
    )  # fmt: skip
    assert result.exit_code == 0, result.exception
    return folder / "system", result


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("smt"))[0]


def test_a_small_language_is_learnt(tmp_path: Path, system: Path) -> None:
    source, reference = write_corpus(tmp_path, "test", 20, 3)
    out = tmp_path / "out"
    result = run(
        "evaluate", system, "--source", source, "--reference", reference, "--output", tmp_path / "out"
    )
    assert float(result.stdout.split()[1]) > 95, result.stdout
    assert out.read_text("utf-8").count("\n") == 20


def test_the_last_weights_that_tuning_finds_are_tried(tmp_path: Path, system: Path) -> None:
    source, reference = (path.read_text("utf-8").splitlines() for path in write_corpus(tmp_path, "val", 8, 4))
    # A system that likes short and unlikely text, and one round, whose weights are the only ones found.
    bad = replace(load_system(system), weights=Weights(language_model=-0.5, words=2.0))
    tuned = tune_system(bad, source, reference, rounds=1, threads=1, seed=1, say=lambda line: None)
    assert tuned.weights != bad.weights
    assert matches(tuned.translate(source), reference) > matches(bad.translate(source), reference)


def test_the_best_round_is_taken_though_a_later_one_is_worse(tmp_path: Path, system: Path) -> None:
    start, random = load_system(system), np.random.default_rng(58)
    source, reference = (
        path.read_text("utf-8").splitlines() for path in write_corpus(tmp_path, "val", 6, 58)
    )
    # No weights give words in just any order.
    reference = [" ".join(random.permutation(line.split())) for line in reference]
    told: list[str] = []
    tuned = tune_system(start, source, reference, rounds=2, threads=1, seed=58, say=told.append)
    found = [float(re.findall(r"BLEU ([\d.]+)", line)[0]) for line in told]
    assert found[-1] < max(found)
    pairs = zip(tuned.translate(source), reference, strict=True)
    counts = sum(count_matches([one], other)[0] for one, other in pairs)
    assert bleu(counts) == pytest.approx(max(found), abs=0.01)


def test_a_list_of_the_best_has_each_text_once(system: Path) -> None:
    (found,) = load_system(system).candidates(["Ein Hund dog ruft."], 50)
    # One of them is passed through: before or behind the other, it is the same text.
    texts = [text for text, _ in found]
    assert len(set(texts)) == len(texts) > 1


def test_the_noisy_channel_alone_chooses_by_two_features(tmp_path: Path, system: Path) -> None:
    source, reference = write_corpus(tmp_path, "val", 8, 4)
    channel = ("--weights", "phrase_backward=1, language_model=1")
    lines = run("translate", system, source, *channel).stdout.splitlines()
    weights = dict.fromkeys(FEATURES, 0.0) | {"phrase_backward": 1.0, "language_model": 1.0}
    assert lines == replace(load_system(system), weights=Weights(**weights)).translate(
        source.read_text().splitlines()
    )
    assert matches(lines, reference.read_text("utf-8").splitlines()) > 4
    # Words alone in turn find nothing.
    assert run("translate", system, source, "--weights", "words=1").stdout.splitlines() != lines
    for wrong in ("word=1", "words", "words=a", ""):
        assert f"{wrong!r} is no NAME=NUMBER" in error_of("translate", system, source, "--weights", wrong)
    assert "finite" in error_of("translate", system, source, "--weights", "words=nan")


def matches(translations: list[str], references: list[str]) -> int:
    return sum(one == other for one, other in zip(translations, references, strict=True))


def test_lines_stay_lines_and_unknown_words_pass_through(system: Path) -> None:
    result = run("translate", system, text="Heute ruft ein kleiner Vogel.\n\nEin roter Xaver schläft.\r\n")
    assert result.stdout == "Today a small bird calls.\n\nA red Xaver sleeps.\n"


def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path: Path) -> None:
    source, target = write_corpus(tmp_path, "train", 3, 1)
    source.write_text("Ein Hund.\n", "utf-8")
    error = error_of("train", "--source", source, "--target", target, "--out", tmp_path / "out")
    assert "train.de has 1 lines, but" in error
    assert not (tmp_path / "out").exists()


def test_a_corpus_without_words_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("\n\n")
    error = error_of(
        "train", "--source", tmp_path / "a", "--target", tmp_path / "b", "--out", tmp_path / "out"
    )
    assert "none of the 2 sentence pairs" in error


def test_systems_of_other_versions_and_damaged_ones_are_refused(tmp_path: Path, system: Path) -> None:
    assert "no saved system" in error_of("translate", tmp_path, os.devnull)
    manifest = json.loads((system / "smt.json").read_text("utf-8"))
    (tmp_path / "smt.json").write_text(json.dumps(manifest | {"format_version": 9}), "utf-8")
    assert "format version 9" in error_of("translate", tmp_path, os.devnull)
    (tmp_path / "smt.json").write_text(json.dumps(manifest), "utf-8")
    assert "is damaged" in error_of("translate", tmp_path, os.devnull)


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    source, target = write_corpus(tmp_path, "train", 20_000, 1)
    command = [sys.executable, "-c", PROGRAM, "train", "--aligner", "ibm4", "--source", source]
    with subprocess.Popen(
        [*map(str, command), "--target", str(target), "--out", str(tmp_path / "out")],
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline().startswith("ibm1 1/5")
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
    assert process.returncode != 0
    assert "Traceback" not in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.de", "train.en"]
