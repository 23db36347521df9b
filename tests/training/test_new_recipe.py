"""Two files become a recipe that `dragoman train` takes, and text that is parted for it."""

import re
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import toy_pairs
from tests.training.toy_pairs import invoke, refusal, run_training

from dragoman_training.data.corpus import Corpus, hold_out
from dragoman_training.new_recipe import SIZES, new_recipe
from dragoman_training.recipe.reader import load_recipe

run = partial(invoke, new_recipe)
refused = partial(refusal, command=new_recipe)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Sentences of which some stand twice, one is alone, and one is the same in both languages."""
    pairs = toy_pairs(2000, 1)
    pairs += [*pairs[:50], ("", "nobody"), ("Berlin, Hamburg, Bremen", "Berlin, Hamburg, Bremen")]
    paths = tmp_path / "our.txt", tmp_path / "theirs.txt"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(side))
    return paths


def test_a_recipe_is_written_that_trains_as_the_next_command_says(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run(*files, "--minutes", 2, "--out", out)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    distinct = len(set(zip(*(file.read_text().split("\n") for file in files), strict=True))) - 1
    assert lines[0] == '2,051 pairs, "de" to "en".'
    assert f"Left out of all pairs: 1 with an empty side, {2051 - distinct:,} there already." in lines
    assert re.search("2,051 that were looked at: 1 with the same text on both sides", result.output)
    # Of so little text the smallest size alone is measured.
    measured = [line for line in lines if re.match(r"\w+: [\d.]+ s a step", line)]
    assert [line.partition(":")[0] for line in measured] == [SIZES[-1].name]
    recipe = load_recipe(out / "recipe.toml")
    assert recipe.data.direction == '"de" to "en"'
    assert recipe.training.max_minutes == 2
    assert lines[-1] == f"Next: dragoman train {out / 'recipe.toml'}"
    limits = ["--set", "training.max_minutes=0.01", "training.threads=1"]
    run_training(out / "recipe.toml", "--out", tmp_path / "run", *limits)
    assert (tmp_path / "run" / "best.safetensors").exists()


def test_nothing_that_measures_is_trained_on() -> None:
    """Each sentence stands with several others, as in Tatoeba."""
    pairs = [(f"satz {number % 90}", f"sentence {number % 70}") for number in range(600)]
    corpus = Corpus(*map(list, zip(*pairs, strict=True)))
    rest, held_out = hold_out(corpus, 20)
    assert len(held_out) == 20
    assert len(set(held_out.sources)) == 20
    assert not set(held_out.sources) & set(rest.sources)
    assert not set(held_out.targets) & set(rest.targets)
    whole = set(pairs)
    assert {*zip(rest.sources, rest.targets, strict=True)} <= whole
    lost = whole - {*zip(rest.sources, rest.targets, strict=True)}
    assert all(one in held_out.sources or other in held_out.targets for one, other in lost)


def test_what_it_can_not_judge_it_asks_for_and_it_writes_over_nothing(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    assert "say with --from and --to" in refused(files[0], files[0], "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "is not empty" in refused(*files, "--out", tmp_path)
    for file in files:
        file.write_text("\n".join(file.read_text().split("\n")[:60]))
    few = refused(*files, "--out", tmp_path / "out")
    assert "there are 60 pairs; training takes 100 at the least" in few


def test_one_that_is_interrupted_leaves_nothing(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman_training.new_recipe._pace", interrupt)
    before = set(tmp_path.iterdir())
    assert run(*files, "--out", tmp_path / "out").exit_code == 1
    assert set(tmp_path.iterdir()) == before
