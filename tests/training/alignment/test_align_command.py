"""`dragoman align` on a small language whose words are translated one by one, and what users do wrong."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.training.toy_pairs import invoke, refusal, stopped_with_ctrl_c

from dragoman_training.alignment.aligner import load_aligner
from dragoman_training.alignment.bitext import WordRule
from dragoman_training.alignment.cli import align
from dragoman_training.alignment.links import METHODS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Das Haus, 3,5 m.", ["das", "haus", ",", "3", ",", "5", "m", "."]),
        ("我用iPhone拍照。", ["我", "用", "iphone", "拍", "照", "。"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("यह किताब है।", ["यह", "किताब", "है", "।"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("cafe\u0301 كِتَاب", ["cafe\u0301", "كِتَاب"]),
        ("한국어 책", ["한국어", "책"]),
    ],
)
def test_words_stand_apart_in_any_script(line: str, expected: list[str]) -> None:
    rule = WordRule(tokenize=True)
    assert rule.normalize(line) == expected
    assert [line[start:end].lower() for start, end in rule.spans(line)] == expected
    assert WordRule().normalize(line) == line.lower().split()


@pytest.mark.parametrize("character", ["\u00a0", "\u202f", "\u2028", "\u3000", "\x85", "\x0b"])
def test_nothing_but_spaces_and_tabs_parts_words(character: str) -> None:
    """Positions are those of other programs, which know no other spaces."""
    line = f" 10{character}km\tweit  weg "
    assert WordRule().split(line) == [f"10{character}km", "weit", "weg"]
    assert [line[slice(*span)] for span in WordRule().spans(line)] == WordRule().split(line)


WORDS = (
    "der the, hund dog, katze cat, sieht sees, hört hears, baum tree, haus house, grün green, alt old, "
    "neu new, vogel bird, fisch fish, und and, nicht not, ruft calls"
)
GERMAN, ENGLISH = map(list, zip(*(pair.split() for pair in WORDS.split(", ")), strict=True))


def write_corpus(folder: Path, num_pairs: int = 300) -> tuple[Path, Path]:
    """Sentences of 2 to 7 words, of which two neighbours change places now and then."""
    random = np.random.default_rng(1)
    source, target = folder / "text.de", folder / "text.en"
    lines = []
    for _ in range(num_pairs):
        words = random.integers(0, len(GERMAN), random.integers(2, 8)).tolist()
        order = list(range(len(words)))
        if random.random() < 0.3:
            order[0], order[1] = order[1], order[0]
        lines.append((words, [words[place] for place in order]))
    source.write_text("".join(" ".join(GERMAN[word] for word in words) + "\n" for words, _ in lines))
    target.write_text("".join(" ".join(ENGLISH[word] for word in words) + "\n" for _, words in lines))
    return source, target


run = partial(invoke, align)
error_of = partial(refusal, command=align)


def train(folder: Path, *more: object) -> Path:
    source, target = write_corpus(folder)
    out = folder / "aligner"
    result = run("train", "--source", source, "--target", target, "--out", out, *more)
    assert result.exit_code == 0, result.exception
    return out


@pytest.fixture(scope="module")
def aligner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("align"))


def pair_files(folder: Path, source: str, target: str) -> tuple[object, ...]:
    (folder / "a").write_text(source, encoding="utf-8")
    (folder / "b").write_text(target, encoding="utf-8")
    return "--source", folder / "a", "--target", folder / "b"


@pytest.mark.parametrize("model", ["ibm1", "ibm2", "hmm", "ibm3", "ibm4", "ibm5"])
def test_every_model_learns_the_words(tmp_path: Path, model: str) -> None:
    out = train(tmp_path, "--model", model)
    files = pair_files(tmp_path, "Der Hund sieht\n\nbaum alt\n", "the dog sees\n\nold tree\n")
    for links in ("posterior", "viterbi"):
        result = run("apply", out, *files, "--links", links, "--symmetrize", "intersection")
        assert result.stdout == "0-0 1-1 2-2\n\n0-1 1-0\n"


def test_perplexity_of_each_iteration_is_told(tmp_path: Path) -> None:
    source, target = write_corpus(tmp_path)
    result = run(
        "train", "--source", source, "--target", target, "--out", tmp_path / "out", "--iterations", "2,2,2",
        "--diagonal", "--no-agreement", "--spelling", 0,
    )  # fmt: skip
    steps = [line.split(":")[0] for line in result.stderr.splitlines()[:-1]]
    assert steps == ["ibm1 1/2", "ibm1 2/2", "ibm2 1/2", "ibm2 2/2", "hmm 1/2", "hmm 2/2"]


def test_score_and_show(tmp_path: Path, aligner: Path) -> None:
    (tmp_path / "links").write_text("0-0 1-1\n")
    (tmp_path / "gold").write_text("0-0 1p1 2-2\n")
    score = "score", tmp_path / "links", tmp_path / "gold"
    assert run(*score).stdout == "precision 100.0  recall 50.0  AER 25.0\n"
    files = pair_files(tmp_path, "a b\n", "a b c\n")
    assert "gold, line 1: link 2-2 is out of range" in error_of(*score, *files)
    picture = run("show", aligner, "baum Alt", "old tree").stdout.splitlines()
    assert [line.rstrip() for line in picture] == ["      baum", "      │  Alt", "old      ██", "tree  ██"]


@pytest.mark.parametrize("model", ["hmm", "ibm3", "ibm4", "ibm5"])
def test_saved_aligner_links_what_the_trained_one_does(tmp_path: Path, model: str) -> None:
    loaded = load_aligner(train(tmp_path, "--model", model))
    loaded.save(tmp_path / "again")
    again = load_aligner(tmp_path / "again")
    random = np.random.default_rng(2)
    pairs = [
        (random.choice([*GERMAN, "fremd"], 6).tolist(), random.choice([*ENGLISH, "fremd"], 7).tolist())
        for _ in range(50)
    ]
    for method in METHODS:
        for one, other in zip(loaded.align(pairs, method), again.align(pairs, method), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_word_never_seen_is_linked_with_one_spelt_alike(aligner: Path) -> None:
    pair = ["bonn", "sieht", "der", "hund"], ["sees", "bonn", "the", "dog"]
    (links,) = load_aligner(aligner).align([pair], "forward")
    assert links[0, 1]


@pytest.mark.parametrize("model", ["hmm", "ibm4"])
def test_long_sentences_are_linked(tmp_path: Path, model: str) -> None:
    aligner = train(tmp_path, "--model", model)
    words = np.random.default_rng(3).integers(0, len(GERMAN), 500).tolist()
    pair = [GERMAN[word] for word in words], [ENGLISH[word] for word in words]
    (links,) = load_aligner(aligner).align([pair], "intersection")
    assert np.diag(links).mean() > 0.95


def test_aligned_alone_is_aligned_among_others(aligner: Path) -> None:
    model = load_aligner(aligner)
    pairs = [(GERMAN[k : k + 4], ENGLISH[k : k + 5]) for k in range(10)]
    together = model.align(pairs, "grow-diag-final-and")
    for pair, links in zip(pairs, together, strict=True):
        np.testing.assert_array_equal(model.align([pair], "grow-diag-final-and")[0], links)


def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path: Path, aligner: Path) -> None:
    files = pair_files(tmp_path, "hund\nbaum\n", "dog\n")
    for command in (("apply", aligner), ("train", "--out", tmp_path / "out")):
        message = error_of(*command, *files)
        assert "a has 2 lines, but" in message
        assert "b has 1: they must match line by line" in message
    assert not (tmp_path / "out").exists()
    (tmp_path / "links").write_text("0-0\n")
    (tmp_path / "gold").write_text("0-0\n0-0\n")
    assert "links has 1 lines, but" in error_of("score", tmp_path / "links", tmp_path / "gold")


def test_texts_of_the_other_direction_and_bytes_that_are_no_text_are_told(
    tmp_path: Path, aligner: Path
) -> None:
    files = pair_files(tmp_path, "hund\nbaum\n", "")
    (tmp_path / "b").write_bytes(b"dog\n\xff\n")
    assert "line 2: not UTF-8" in error_of("apply", aligner, *files)
    files = pair_files(tmp_path, "the dog sees\n", "der hund sieht\n")
    assert "other way round" in error_of("apply", aligner, *files)
    # What was left untranslated is not of the other direction.
    assert run("apply", aligner, *pair_files(tmp_path, "der hund\n", "der hund\n")).exit_code == 0


def test_nothing_to_learn_from_is_told_and_a_corpus_of_one_sentence_is_learnt(tmp_path: Path) -> None:
    for source, target in (("\n", "dog\n"), ("", ""), ("a " * 101 + "\n", "b\n")):
        files = pair_files(tmp_path, source, target)
        assert "nothing to learn from" in error_of("train", *files, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    files = pair_files(tmp_path, "hund\n\n", "dog\n\n")
    result = run("train", *files, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "1 of 2 pairs were not learnt from" in result.stderr
    assert run("apply", tmp_path / "out", *files).stdout == "0-0\n\n"


@pytest.mark.parametrize(
    ("iterations", "message"),
    [("5,5", "hmm needs 3"), ("5,5,0", "0 iterations of hmm"), ("5,-1,5", "-1 iterations")],
)
def test_wrong_iterations_are_told(tmp_path: Path, iterations: str, message: str) -> None:
    files = pair_files(tmp_path, "hund\n", "dog\n")
    assert message in error_of("train", *files, "--out", tmp_path / "out", "--iterations", iterations)


def test_a_folder_in_use_is_left_alone(tmp_path: Path, aligner: Path) -> None:
    before = {path.name: path.read_bytes() for path in aligner.iterdir()}
    assert "exists" in error_of("train", *pair_files(tmp_path, "hund\n", "dog\n"), "--out", aligner)
    assert {path.name: path.read_bytes() for path in aligner.iterdir()} == before


def test_damaged_and_foreign_folders_are_told(tmp_path: Path) -> None:
    out = train(tmp_path)
    files = pair_files(tmp_path, "hund\n", "dog\n")
    whole = (out / "aligner.json").read_text()
    for manifest, message in (
        (json.dumps(json.loads(whole) | {"format_version": 99}), "format version 99"),
        (whole.replace('"forward": "hmm"', '"forward": "ibm9"'), "damaged"),
        ("{", "damaged"),
    ):
        assert manifest != whole
        (out / "aligner.json").write_text(manifest)
        assert message in error_of("apply", out, *files)
    (out / "aligner.json").write_text(whole)
    (out / "forward.npz").write_bytes((out / "forward.npz").read_bytes()[:100])
    assert "damaged" in error_of("apply", out, *files)
    (out / "source.words").write_text("hund\n")
    assert "damaged" in error_of("apply", out, *files)
    (out / "aligner.json").unlink()
    assert "no saved aligner" in error_of("apply", out, *files)


def test_failure_while_saving_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **more: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    files = pair_files(tmp_path, "hund\n", "dog\n")
    assert isinstance(run("train", *files, "--out", tmp_path / "out").exception, OSError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    source, target = write_corpus(tmp_path)
    program = "from dragoman_training.alignment.cli import align; align()"
    files = ["--source", source, "--target", target, "--out", tmp_path / "out"]
    said = stopped_with_ctrl_c(program, "train", *files, "--iterations", "1000000000,0,1")
    assert said.endswith("Aborted!\n")
    assert set(tmp_path.iterdir()) == {source, target}
