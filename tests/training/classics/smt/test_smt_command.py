"""`dragoman smt` on a small language of two orders of words: its tuning, its lines, what users do wrong."""

import json
import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from tests.training.toy_pairs import invoke, refusal, stopped_with_ctrl_c

from dragoman_training.classics.smt.cli import smt
from dragoman_training.classics.smt.decoder import FEATURES, Weights
from dragoman_training.classics.smt.system import JOINER, Casing, join_words, load_system, split_words
from dragoman_training.classics.smt.tuning import (
    Candidates,
    bleu,
    count_matches,
    search_line,
    tune,
    tune_system,
)

NOUNS = [("Hund", "dog"), ("Mann", "man"), ("Baum", "tree"), ("Vogel", "bird"), ("Fisch", "fish")]
ADJECTIVES = [("alter", "old"), ("neuer", "new"), ("kleiner", "small"), ("roter", "red")]
VERBS = [("schläft", "sleeps"), ("ruft", "calls"), ("fällt", "falls")]
run = partial(invoke, smt)
error_of = partial(refusal, command=smt)


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


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smt")
    source, target = write_corpus(folder, "train", 60, 1)
    valid_source, valid_target = write_corpus(folder, "val", 12, 2)
    result = run(
        "train", "--source", source, "--target", target, "--out", folder / "system", "--rounds", 2,
        "--valid-source", valid_source, "--valid-target", valid_target,
    )  # fmt: skip
    assert result.exit_code == 0, result.exception
    return folder / "system"


def test_a_small_language_is_learnt(tmp_path: Path, system: Path) -> None:
    source, reference = write_corpus(tmp_path, "test", 20, 3)
    out = tmp_path / "out"
    result = run("evaluate", system, "--source", source, "--reference", reference, "--output", out)
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
    weights = Weights(**dict.fromkeys(FEATURES, 0.0) | {"phrase_backward": 1.0, "language_model": 1.0})
    expected = replace(load_system(system), weights=weights).translate(source.read_text().splitlines())
    assert lines == expected
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


@pytest.mark.parametrize(
    ("source", "message"),
    [("Ein Hund.\n", "train.de has 1 lines, but"), ("\n\n", "none of the 2 sentence pairs")],
)
def test_files_of_unequal_length_or_without_words_are_refused(
    tmp_path: Path, source: str, message: str
) -> None:
    files = (tmp_path / "train.de", tmp_path / "train.en")
    for path, text in zip(files, (source, "\n\n"), strict=True):
        path.write_text(text, "utf-8")
    assert message in error_of("train", "--source", files[0], "--target", files[1], "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_systems_of_other_versions_and_damaged_ones_are_refused(tmp_path: Path, system: Path) -> None:
    assert "no saved system" in error_of("translate", tmp_path, os.devnull)
    manifest = json.loads((system / "smt.json").read_text("utf-8"))
    for changes, message in (({"format_version": 9}, "format version 9"), ({}, "is damaged")):
        (tmp_path / "smt.json").write_text(json.dumps(manifest | changes), "utf-8")
        assert message in error_of("translate", tmp_path, os.devnull)


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    source, target = write_corpus(tmp_path, "train", 20_000, 1)
    program = "from dragoman_training.classics.smt.cli import smt; smt()"
    files = ["--source", source, "--target", target, "--out", tmp_path / "out"]
    stopped_with_ctrl_c(program, "train", "--aligner", "ibm4", *files)
    assert set(tmp_path.iterdir()) == {source, target}


@given(st.text(alphabet=st.characters(exclude_characters=JOINER)))
def test_words_tell_their_line_up_to_white_space(line: str) -> None:
    assert join_words(split_words(line)) == " ".join(line.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Ein Mann, der schläft.", ["Ein", "Mann", "￭,", "der", "schläft", "￭."]),
        ("saftig-grünes", ["saftig", "￭-￭", "grünes"]),
        ("(so) „ja“!", ["(￭", "so", "￭)", "„￭", "ja", "￭“", "￭!"]),
    ],
)
def test_marks_say_where_no_white_space_is(line: str, words: list[str]) -> None:
    assert split_words(line) == words


def test_a_first_word_is_written_as_it_is_within_sentences() -> None:
    casing = Casing.of([["Der", "Mann", "sieht", "der", "Frau"], ["Mann", "Er", "er", "er"]])
    assert casing.within(["Der", "Hund"]) == ["der", "Hund"]
    assert casing.within(["Mann", "Der"]) == ["Mann", "Der"]
    assert casing.within(["Er"]) == ["er"]
    assert casing.within(["Nie"]) == ["Nie"]
    assert casing.within([]) == []


NUM_SENTENCES, NUM_LISTED, NUM_FEATURES = 12, 8, 4


def candidates(seed: int = 0) -> Candidates:
    """Counts that follow hidden weights, with noise."""
    random = np.random.default_rng(seed)
    features, counts = [], []
    for _ in range(NUM_SENTENCES):
        own = random.normal(size=(NUM_LISTED, NUM_FEATURES))
        good = own @ [1.0, -0.5, 0.2, 0.0] + random.normal(scale=0.3, size=NUM_LISTED)
        matches = np.clip(np.round(6 + 2 * good), 0, 10)
        rows = [[n, max(0, n - 2), max(0, n - 4), max(0, n - 6), 10, 9, 8, 7, 10, 10] for n in matches]
        features.append(own)
        counts.append(np.array(rows))
    return Candidates.of(features, counts)


@pytest.mark.parametrize("seed", range(3))
def test_no_step_of_a_fine_grid_is_better_than_the_one_found(seed: int) -> None:
    given, random = candidates(seed), np.random.default_rng(seed)
    start_F, direction_F = random.normal(size=(2, NUM_FEATURES))
    start_N, direction_N = given.features_NF @ start_F, given.features_NF @ direction_F
    gamma, found = search_line(start_N, direction_N, given.counts_N10, given.first_S)
    assert given.bleu(start_F + gamma * direction_F) == pytest.approx(found)
    best = max(given.bleu(start_F + step * direction_F) for step in np.linspace(-20, 20, 1001))
    assert found >= best - 1e-9


def test_tuning_finds_weights_that_are_better_than_the_start() -> None:
    given, start_F = candidates(), np.array([0.1, 0.5, 0.5, 0.5])
    tuned_F, found = tune(given, start_F, num_starts=4, random=np.random.default_rng(1))
    assert found > given.bleu(start_F) + 5
    assert given.bleu(tuned_F) == pytest.approx(found)
    assert tuned_F[0] > 0 > tuned_F[1]
    assert np.abs(tuned_F).sum() == pytest.approx(1)


def test_of_equal_features_the_first_is_chosen_and_nothing_moves() -> None:
    given = Candidates.of([np.ones((3, 2))] * 2, [np.tile([5, 4, 3, 2, 5, 4, 3, 2, 5, 5.0], (3, 1))] * 2)
    assert given.choose(np.ones(2)).tolist() == [0, 0]
    assert search_line(np.ones(6), np.ones(6), given.counts_N10, given.first_S) == (0.0, 100.0)


@pytest.mark.parametrize("end", ["", " Now they do.", "They do."])
@pytest.mark.parametrize("is_short", [True, False])
def test_counts_make_the_bleu_of_sacrebleu(end: str, is_short: bool) -> None:
    """Of translations that are as long as their references, shorter, and longer."""
    translations = ["A man is sleeping on the sofa, I think.", "Two dogs run through the green grass."]
    references = ["A man sleeps on the sofa, I think.", "Two dogs are running through green grass there."]
    (references if is_short else translations)[1] += end
    counts = sum(count_matches([one], other)[0] for one, other in zip(translations, references, strict=True))
    assert bleu(counts) == pytest.approx(BLEU().corpus_score(translations, [references]).score)
