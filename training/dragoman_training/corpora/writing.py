"""The files of one direction: text to train on, validate on and measure with, samples, and the report.

A source may begin with a tag: its German side says "du", or "Sie", or is a machine's.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from dragoman_training.corpora import contexts, dictionary, variants
from dragoman_training.corpora.cleaning import num_words
from dragoman_training.corpora.prepared import Kept, Prepared, references
from dragoman_training.corpora.tables import Pair, draw, sources
from dragoman_training.data.files import read_lines

SHARE_TAGGED = 0.5
"""The share of the pairs whose form of address is sure that have its tag: a text without one has any."""
MAX_SHORT_WORDS = 4
NUM_SAMPLES = 40
VALIDATION = {"tatoeba": 500, "documentation": 300, "interface": 200}
PHRASE_TIMES = 4
TITLE_SMALL_WORDS = frozenset("a an and as at by for from in of on or the to with your our".split())  # noqa: SIM905
GROUPS = ("everyday", "short", "general", "machine")
"""What a recipe weighs: sentences of Tatoeba's, texts of few words, all other, and what a machine wrote."""


def write(
    prepared: Prepared, optional: set[str], out: Path, report: Callable[[str], None], *, into_english: bool
) -> None:
    """Writes the files of one direction to a folder of their own, translating into `optional` corpora too."""
    source, target = (prepared.language, "en") if into_english else ("en", prepared.language)
    folder = out / f"{source}-{target}"
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[tuple[float, str, str]]] = {group: [] for group in GROUPS}
    samples: list[str] = []
    counted: dict[str, dict[str, Any]] = {}
    for kind, pairs in kinds(prepared, optional, into_english=into_english).items():
        kept = prepared.kept.get(kind, Kept())
        left_out = Counter(kept.left_out)
        if kind not in prepared.kept:
            pairs = prepared.allowed(pairs, left_out)
        of_kind: list[tuple[float, str, str]] = []
        words = 0
        for number, (english, other) in enumerate(pairs):
            text, translation = (other, english) if into_english else (english, other)
            line = tagged(kind, text, translation, target), translation
            # Repeated pairs are spread over the file; the same pairs give the same order.
            placed = draw(f"{number} {text}", kind), *line
            of_kind.append(placed)
            groups[group_of(kind, text, translation)].append(placed)
            words += num_words(english)
        samples += ["\t".join((kind, *line)) for _, *line in nsmallest(NUM_SAMPLES, of_kind)]
        numbers = {"read": kept.num_read, "written": len(of_kind), "english_words": words}
        counted[kind] = {**numbers, "left_out": dict(left_out.most_common())}
        report(f"{source}-{target} {kind}: {len(of_kind):,} pairs, {words:,} English words")
    for group, lines in groups.items():
        lines.sort()
        for number, side in enumerate((source, target), start=1):
            _write_lines(folder / f"{group}.{side}", (str(line[number]) for line in lines))
    _write_lines(folder / "samples.tsv", samples)
    result = {
        "source": source,
        "target": target,
        "pairs": {group: len(lines) for group, lines in groups.items()},
        "english_words": sum(one["english_words"] for one in counted.values()),
        "held_out_strings": write_held_out(prepared, folder, source, target, into_english=into_english),
        "kinds": counted,
        "credit": prepared.credits,
    }
    (folder / "report.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / "report.txt").write_text(as_text(result), encoding="utf-8")
    report(f"{folder}: {sum(map(len, groups.values())):,} pairs, {result['english_words']:,} English words")


def group_of(kind: str, text: str, translation: str) -> str:
    """Which of the files a pair is written to."""
    if kind == "microsoft-docs-machine":
        return "machine"
    if kind == "tatoeba":
        return "everyday"
    return "short" if max(num_words(text), num_words(translation)) <= MAX_SHORT_WORDS else "general"


def kinds(prepared: Prepared, optional: set[str], *, into_english: bool) -> dict[str, Iterable[Pair]]:
    """The pairs of each kind that a direction is trained on, English first, short ones several times."""
    language = prepared.language
    found: dict[str, Iterable[Pair]] = {}
    for source in (one for one in sources() if one.name in prepared.kept):
        is_target = into_english or not (source.only_source or source.is_optional_target)
        if is_target or (source.is_optional_target and source.name in optional):
            found[source.name] = repeated(prepared.kept[source.name].pairs, source.short_times)
    if "tatoeba" in found:
        pairs = prepared.kept["tatoeba"].pairs
        found["variants"] = variants.vary(pairs, language, prepared.names, into_english=into_english)
    if not into_english:
        names = [one.name for one in sources() if one.is_interface and one.name in found]
        interface = [prepared.kept[name].pairs for name in names]
        found["titles"] = titles(chain.from_iterable(interface))
    if language == "de":
        known = contexts.vocabulary(prepared.entries, prepared.counts, into_english=into_english)
        everyday = prepared.kept["tatoeba"].pairs if "tatoeba" in found else None
        found["contexts"] = () if everyday is None else contexts.insert(everyday, known)
        found["invented"] = variants.invent(prepared.names)
        found["phrases"] = phrases(into_english=into_english)
    of_words = prepared.entries, prepared.counts, language
    found["dictionary"] = dictionary.make_pairs(*of_words, into_english=into_english)
    return found


def repeated(pairs: Iterable[Pair], short_times: int) -> Iterator[Pair]:
    """The pairs, those of few words several times."""
    for pair in pairs:
        is_short = max(map(num_words, pair)) <= MAX_SHORT_WORDS
        for _ in range(short_times if is_short else 1):
            yield pair


def titles(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Short strings as English writes titles, "Opening Hours", or without those capitals."""
    for english, other in pairs:
        words = english.split()
        is_short = 2 <= len(words) <= MAX_SHORT_WORDS and english.replace(" ", "").isalpha()
        if is_short and words[0][0].isupper():
            if all(word.islower() for word in words[1:]):
                yield " ".join(w if w in TITLE_SMALL_WORDS else w.capitalize() for w in words), other
            elif all(word.istitle() or word in TITLE_SMALL_WORDS for word in words):
                yield english.capitalize(), other


def phrases(*, into_english: bool) -> Iterator[Pair]:
    """Everyday phrases, headings and buttons that were written for the shipped models."""
    for name in ("phrases.de-en.tsv", "phrases.en-de.tsv"):
        is_own = (name == "phrases.de-en.tsv") == into_english
        text = files("dragoman_training.corpora").joinpath(name).read_text(encoding="utf-8")
        for line in text.splitlines():
            source, target = line.split("\t")
            pair = (target, source) if name == "phrases.de-en.tsv" else (source, target)
            for _ in range(PHRASE_TIMES if is_own else 1):
                yield pair


def tagged(kind: str, text: str, translation: str, target: str) -> str:
    """The source text with the tag that it asks for, if any."""
    if kind == "microsoft-docs-machine":
        return f"{MACHINE} {text}"
    if target == "de" and draw(text + translation, "formality") < SHARE_TAGGED:
        tag = formality(text, translation)
        return f"{tag} {text}" if tag else text
    return text


def write_held_out(prepared: Prepared, folder: Path, source: str, target: str, *, into_english: bool) -> int:
    """Writes the strings to measure with and the pairs to validate on; returns how many strings there are."""
    strings = references(prepared.strings, into_english=into_english)
    lines = ("\t".join((text, *dict.fromkeys(strings[text]))) for text in sorted(strings))
    _write_lines(folder / "ui-heldout.tsv", lines)
    everyday: dict[str, Pair] = {}
    for name in (f"tatoeba-{prepared.language}-en", f"tatoeba-en-{prepared.language}"):
        paths = [prepared.folder / name / f"val.{side}" for side in (source, target)]
        if all(path.exists() for path in paths):
            # A sentence has several translations.
            everyday |= {pair[0]: pair for pair in zip(*map(read_lines, paths), strict=True)}
    chosen = sorted(everyday.values(), key=lambda pair: draw(pair[0], "validation"))[: VALIDATION["tatoeba"]]
    docs = [(other, english) if into_english else (english, other) for english, other in prepared.validation]
    chosen += sorted(docs, key=lambda pair: draw(pair[0], "validation"))[: VALIDATION["documentation"]]
    ui = sorted(strings, key=lambda text: draw(text, "validation"))[: VALIDATION["interface"]]
    chosen += [(text, strings[text][0]) for text in ui]
    # The first of them serve to judge by while training: they are of all kinds.
    chosen.sort(key=lambda pair: draw(pair[0], "order"))
    _write_lines(folder / f"valid.{source}", (pair[0] for pair in chosen))
    _write_lines(folder / f"valid.{target}", (pair[1] for pair in chosen))
    return len(strings)


def as_text(result: dict[str, Any]) -> str:
    """The report for reading."""
    rows = [f"{'kind':24}{'read':>12}{'written':>12}{'English words':>16}"]
    reasons: Counter[str] = Counter()
    for kind, one in result["kinds"].items():
        rows.append(f"{kind:24}{one['read']:>12,}{one['written']:>12,}{one['english_words']:>16,}")
        rows += [f"    {count:>10,} {reason}" for reason, count in one["left_out"].items()]
        reasons.update(one["left_out"])
    rows += ["", "left out, all kinds:", *(f"    {n:>10,} {reason}" for reason, n in reasons.most_common())]
    return "\n".join([f"{result['source']}-{result['target']}: {result['pairs']} pairs", "", *rows]) + "\n"


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


FORMAL = "\ue000"
INFORMAL = "\ue001"
MACHINE = "\ue002"
"""What a source begins with, before a space, that is translated formally, informally, or that a machine wrote
(Caswell et al. 2019): characters for private use, which `vocabulary.tags` makes pieces of their own."""

_INFORMAL = re.compile(r"\b(?:[Dd]u|[Dd]ich|[Dd]ir|[Dd]ein(?:e[nmrs]?)?|[Ee]uch|[Ee]uer|[Ee]ure[nmrs]?)\b")
_FORMAL_WITHIN = re.compile(r"[\w,;)\"“’'–-] (?:Sie|Ihnen|Ihr(?:e[nmrs]?)?)\b")
_FORMAL = re.compile(r"\b(?:Sie|Ihnen|Ihr(?:e[nmrs]?)?)\b")
_YOU = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)
_OTHERS = re.compile(r"\b(?:she|her|hers|they|them|their|theirs|it|its|he|his)\b", re.IGNORECASE)


def formality(english: str, german: str) -> str | None:
    """The tag of the form of address, or None where there is none, both, or it is not sure."""
    informal = bool(_INFORMAL.search(german))
    formal = bool(_FORMAL_WITHIN.search(german))
    if not formal and not informal and _YOU.search(english) and not _OTHERS.search(english):
        # At the beginning of a sentence "Sie" may be "she" or "they".
        formal = bool(_FORMAL.search(german))
    return None if formal == informal else FORMAL if formal else INFORMAL
