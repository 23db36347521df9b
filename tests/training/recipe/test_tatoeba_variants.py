"""The variants of Tatoeba's pairs that the shipped model is trained on."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[3] / "training" / "recipes" / "tatoeba-de-en"


@pytest.fixture(scope="module")
def variants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tatoeba_variants", FOLDER / "variants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_are_the_same_on_both_sides_whatever_case_they_are_in(variants: ModuleType) -> None:
    pair = ("Toms Schwester und Maria sahen Tom in Boston.", "Tom's sister and Mary saw Tom in Boston.")
    for seed in range(20):
        source, target = variants.rename(pair, random.Random(seed))
        man, woman = target.split("'s ")[0], target.split(" saw ")[0].split(" and ")[1]
        city = dict(variants.CITIES)[source.split(" in ")[1].rstrip(".")]
        assert source.startswith(f"{man}s Schwester und {woman} sahen {man} in ")
        assert target == f"{man}'s sister and {woman} saw {man} in {city}."
        assert man in variants.MEN
        assert woman in variants.WOMEN


def test_a_name_that_one_side_has_more_often_stays(variants: ModuleType) -> None:
    pair = ("Tom sagt, dass er kommt.", "Tom says that Tom is coming.")
    assert variants.rename(pair, random.Random(1)) == pair


def test_no_name_ends_where_a_genitive_would_be_written_otherwise(variants: ModuleType) -> None:
    assert not [name for name in (*variants.MEN, *variants.WOMEN) if name[-1] in "sßxz"]


def test_numbers_are_the_same_on_both_sides(variants: ModuleType) -> None:
    source, target = variants.renumber(("Er ist 42, sie 7.", "He is 42, she is 7."), random.Random(3))
    numbers = [int(number) for number in source.removeprefix("Er ist ").rstrip(".").split(", sie ")]
    assert target == f"He is {numbers[0]}, she is {numbers[1]}."
    assert 10 <= numbers[0] <= 99
    assert numbers != [42, 7]
    unlike = ("Es ist 15 Uhr.", "It's 3 o'clock.")
    assert variants.renumber(unlike, random.Random(3)) == unlike


def test_prices_are_written_as_each_language_does(variants: ModuleType) -> None:
    generator = random.Random(1)
    pairs = [variants.price(generator) for _ in range(300)]
    assert any(",99 €" in source and ".99" in target for source, target in pairs)
    for source, target in pairs:
        assert ("€" in source) == ("€" in target)
        assert [c for c in source if c.isdigit()] == [c for c in target if c.isdigit()]


def test_the_phrases_are_pairs(variants: ModuleType) -> None:
    phrases = variants.read_pairs(FOLDER / "phrases.tsv")
    assert len(phrases) == len(set(phrases)) > 100
    assert all(source.strip() == source and target.strip() == target and target for source, target in phrases)


def test_the_same_pairs_give_the_same_files_without_a_side_of_a_validation_pair(
    variants: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {
        "train.de": ["Tom schläft.", "Ich bin 30.", "Das ist gut."],
        "train.en": ["Tom is asleep.", "I am 30.", "That is good."],
        "val.de": ["Guten Morgen!", "Das ist gut."],
        "val.en": ["Morning!", "Fine."],
    }
    for name, side in lines.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side))
    written = []
    for _ in range(2):
        variants.main(tmp_path)
        written.append([(tmp_path / f"variants.{side}").read_text().splitlines() for side in ("de", "en")])
    assert written[0] == written[1]
    sources, targets = written[0]
    assert len(sources) == len(targets)
    assert "Guten Abend." in sources
    assert not {"Guten Morgen!", "Das ist gut."} & set(sources)
    assert "TOM SCHLÄFT." in sources
    assert "variants of 3 pairs" in capsys.readouterr().out
