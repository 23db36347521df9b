"""`python -m benchmarks shipped`, and the lists that it judges by."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.shipped import shipped_bundle

from benchmarks.scenarios.shipped.doubts import FAULTS
from benchmarks.scenarios.shipped.judging import judge, read_strings, read_words
from dragoman_server.text.judge.doubts import LIMITS

ROOT = Path(__file__).parents[2]
LISTS = ROOT / "benchmarks" / "scenarios" / "shipped"


@pytest.mark.parametrize("pair", ["de-en", "en-de"])
def test_the_lists_have_what_they_say(pair: str) -> None:
    words = read_words(LISTS / f"words.{pair}.tsv")
    assert len(words) >= 500
    texts = [text for word, accepted in words.items() for text in (word, *accepted)]
    assert not [text for text in texts if not text or text != text.strip()]
    assert not [word for word, accepted in words.items() if len(set(accepted)) < len(accepted)]
    lines = (LISTS / f"everyday.{pair}.txt").read_text().splitlines()
    assert len(set(lines)) == len(lines) == 60
    assert all(5 <= len(line.split()) <= 25 for line in lines)


def test_an_output_is_right_by_any_reference_and_a_full_stop_of_its_own_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "strings.tsv"
    path.write_text("Cancel\tAbbrechen\tStornieren\nGo!\tLos!\nSave\tSpeichern\nMr.\tHerr\n")
    strings = read_strings(path)
    assert list(strings) == ["Cancel", "Go!", "Save", "Mr."]
    row = judge("strings", strings, ["Stornieren", "Los!", "speichern.", "Herr."])
    assert row == {"texts": "strings", "count": 4, "right": 0.5, "loosely": 1.0, "stops": 0.25}


def test_a_fault_is_seen_by_the_reference_whatever_is_warned_of() -> None:
    # By kind: the source, a reference, an output that has the fault, and one that has not.
    pairs = {
        "omission": ("Ich gehe heute nach Hause.", "I am going home today.", "I go.", "Today I'm off home."),
        "length": ("Ja, gern.", "Yes, please.", "Yes, please, yes, with pleasure.", "Yes, gladly."),
        "repetition": ("Er ist da.", "He is there.", "He is he is he is he.", "He is here."),
        "brackets": ("Er (Tom) ist da.", "He (Tom) is there.", "He Tom is there.", "Tom (he) is here."),
        "name_missing": ("Ich sah Anna gern.", "I liked to see Anna.", "I liked her.", "I loved Anna."),
        "untranslated": ("Er ist heute da.", "He is there.", "Er ist heute there.", "Er ist here."),
    }
    assert pairs.keys() == FAULTS.keys() == LIMITS.keys()
    for kind, (source, reference, faulty, right) in pairs.items():
        _, has_fault = FAULTS[kind]
        assert has_fault(source, reference, faulty), kind
        assert not has_fault(source, reference, right), kind
        assert not has_fault(source, reference, reference), kind


@pytest.mark.long
def test_bundles_are_measured_side_by_side(benchmark: Callable[..., Any], tmp_path: Path) -> None:
    for name, lines in {
        "tests/ud-pud/pud.de": ["Der Hund ist da."],
        "tests/ud-pud/pud.en": ["The dog is there."],
        "tatoeba-de-en/val.de": ["Ich habe ein Haus."],
        "tatoeba-de-en/val.en": ["I have a house."],
        "hard-texts/de-en.jsonl": [
            '{"text": "Hallo {a}!", "kind": "x", "must": [["{a}"]], "must_not": ["y"]}'
        ],
        "strings.tsv": ["Hund\tdog"],
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    mixed = tmp_path / "mixed.txt"
    bundle = shipped_bundle("de-en")
    other = shutil.copytree(bundle, tmp_path / "de-en" / "1")
    ran = benchmark(
        "shipped", "--bundle", bundle, "--bundle", other, "--data", tmp_path,
        "--strings", tmp_path / "strings.tsv", "--mixed", mixed, "--limit", 2, "--beam", 1,
    )  # fmt: skip
    assert [row["texts"] for row in ran.results["scores"]] == ["ud-pud", "tatoeba val"] * 2
    assert [(row["texts"], row["count"]) for row in ran.results["shares"]] == [
        ("common words", 2),
        ("interface strings", 1),
        ("hard texts", 1),
    ] * 2
    assert all(row["right"] == 1 for row in ran.results["shares"] if row["texts"] == "hard texts")
    rated = [(row["texts"], row["count"]) for row in ran.results["confidence"]]
    assert rated == [("ud-pud", 1), ("tatoeba val", 1)] * 2
    assert all(0 < row["confidence"] < 1 for row in ran.results["confidence"])
    # Each line is translated as the reference has it.
    assert {(row["false"], row["faulty"], row["hit"], row["told"]) for row in ran.results["warnings"]} == {
        (0, 0, None, 0)
    }
    assert len(mixed.read_text().splitlines()) == 6
