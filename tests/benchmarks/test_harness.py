"""`python -m benchmarks`: finds scenarios, takes turns, writes what came out; the lists that it judges by."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.conftest import ROOT, python
from tests.shipped import shipped_bundle

from benchmarks.measuring import in_turns, ratio, summarize
from benchmarks.scenarios.shipped.doubts import FAULTS
from benchmarks.scenarios.shipped.judging import judge, read_strings, read_words
from dragoman_server.text.judge.doubts import LIMITS


def test_each_scenario_is_listed_with_what_it_measures() -> None:
    listed = dict(line.split(maxsplit=1) for line in python("--list").stdout.splitlines())
    folder = ROOT / "benchmarks" / "scenarios"
    assert listed.keys() == {path.stem for path in folder.iterdir() if path.stem[0] not in "_."}
    assert all(len(summary) > 20 for summary in listed.values())


def test_a_scenario_prints_its_rows_and_writes_json_and_markdown(benchmark: Callable[..., Any]) -> None:
    ran = benchmark("policy", "--only", "offline", "--seeds", 1)
    [row] = ran.results["rows"]
    assert row["workload"] == "offline"
    assert row["callers_per_second"] > 100
    assert ran.results["command"].startswith("python -m benchmarks policy --only offline")
    assert ran.results["machine"]["cores"] > 0
    assert ran.results["seeds"] == 1
    rate = f"{row['callers_per_second']:.1f}"
    assert f"| offline | {row['p50']:.0f} |" in ran.markdown
    assert f"| {rate} | – |" in ran.markdown
    assert f"`{ran.results['command']}`" in ran.markdown
    assert rate in ran.output


def test_what_cannot_be_measured_is_said_in_one_line() -> None:
    refused = python("policy", "--only", "nothing")
    assert refused.returncode == 2
    assert "none has 'nothing' in its name" in refused.stderr
    assert "No such command 'pollicy'" in python("pollicy").stderr
    absent = python("serve", "--limit", "0")
    assert "--limit" in absent.stderr


def test_a_ratio_is_taken_repeat_by_repeat() -> None:
    # Both were half as fast in the second repeat: the ratio does not show it.
    assert ratio([4.0, 2.0, 4.4], [2.0, 1.0, 2.0]).median == 2.0
    summary = summarize([12.0, 8.0, 10.0])
    assert (summary.median, summary.spread) == (10.0, pytest.approx(0.4))


def test_no_repeat_but_the_first_begins_when_the_time_is_over() -> None:
    cases = {"a": lambda: "a", "b": lambda: "b"}
    assert in_turns(cases, 3, str) == {"a": ["a"] * 3, "b": ["b"] * 3}
    assert in_turns(cases, 3, str, until=time.monotonic()) == {"a": ["a"], "b": ["b"]}


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
        "hard-texts/de-en.jsonl": ['{"text": "Hallo {a}!", "kind": "x", "must": [["{a}"]]}'],
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
    shares = [(row["texts"], row["count"]) for row in ran.results["shares"]]
    assert shares == [("common words", 2), ("interface strings", 1), ("hard texts", 1)] * 2
    assert all(row["right"] == 1 for row in ran.results["shares"] if row["texts"] == "hard texts")
    rated = [(row["texts"], row["count"]) for row in ran.results["confidence"]]
    assert rated == [("ud-pud", 1), ("tatoeba val", 1)] * 2
    assert all(0 < row["confidence"] < 1 for row in ran.results["confidence"])
    # Each line is translated as the reference has it.
    for row in ran.results["warnings"]:
        assert (row["false"], row["faulty"], row["hit"], row["told"]) == (0, 0, None, 0)
    assert len(mixed.read_text().splitlines()) == 6
