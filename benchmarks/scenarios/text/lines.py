"""Texts of each kind of what must come through whatever the model.

A hundred are made of frames and spans, sentences of a corpus have spans put in, and a file has hard texts.
"""

import itertools
import json
import random
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measuring import MeasurementError
from dragoman_server.offline.system import BundleSystem
from dragoman_server.text.find.unknown import has_no_letter_of
from dragoman_server.text.options import Protection, Segmentation, TextFormat
from dragoman_server.text.translated import TranslatedText

_TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))
FRAMES: Mapping[str, Sequence[str]] = _TEXTS["frames"]
INSERTED: Mapping[str, Sequence[str]] = _TEXTS["inserted"]
TERMS: Mapping[str, str] = _TEXTS["terms"]
KINDS = tuple(FRAMES)
NUM_LINES = 100
"""Lines of each kind."""
TAGS = ('<a href="#x">', "</a>", '<img src="y">', "<p>", "</p>")
"""What each text of `with_tags` has once."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A text, and what its translation has to be like."""

    kind: str
    text: str
    spans: tuple[str, ...] = ()
    """Each comes once for each time that it is here."""
    same_as: str | None = None
    """The text whose translation it has."""

    @property
    def is_html(self) -> bool:
        """Whether the text has tags."""
        return self.kind == "markup"

    def passes(self, answer: str, other: str | None = None) -> bool:
        """Whether the answer has all that it must; `other` is the answer to `same_as`."""
        if self.same_as is not None:
            # What a model can't read passes through, with all that is in it.
            return answer == other or (answer, other) == (self.text, self.same_as)
        if not all(answer.count(span) == self.text.count(span) for span in self.spans):
            return False
        return not self.is_html or _nests(answer)


def lines(kind: str, language: str) -> Iterator[Line]:
    """The texts of a kind, always the same for a model of this source language."""
    if kind == "markup":
        return _markup()
    if kind == "invisible":
        return _invisible()
    spans = _TEXTS["spans"][kind]
    if kind == "unknown":
        spans = [span for span in spans if _is_latin(span) or has_no_letter_of(span, language)]
    return _spans(kind, spans)


def _is_latin(span: str) -> bool:
    return unicodedata.name(span[0]).startswith("LATIN")


def _spans(kind: str, chosen: Sequence[str]) -> Iterator[Line]:
    spans = itertools.cycle(chosen)
    for number in range(NUM_LINES):
        frame = FRAMES[kind][number % len(FRAMES[kind])]
        used = tuple(itertools.islice(spans, frame.count("§")))
        texts = frame.split("§")
        filled = "".join(itertools.chain(*zip(texts, (*used, ""), strict=True)))
        yield Line(kind=kind, text=filled, spans=used)


def _markup() -> Iterator[Line]:
    elements, empty = (
        itertools.cycle(_TEXTS["markup"]["elements"]),
        itertools.cycle(_TEXTS["markup"]["empty"]),
    )
    for number in range(NUM_LINES):
        frame = FRAMES["markup"][number % len(FRAMES["markup"])]
        chosen = {mark: next(elements) for mark in ("1", "2")}
        tags: list[str] = []

        def tag(found: re.Match[str], chosen: dict[str, str] = chosen, tags: list[str] = tags) -> str:
            mark = found[1]
            if mark == "0":
                made = str(next(empty))
            elif mark.startswith("/"):
                made = f"</{chosen[mark[1:]].split()[0]}>"
            else:
                made = f"<{chosen[mark]}>"
            tags.append(made)
            return made

        yield Line(kind="markup", text=re.sub(r"\{(/?\d)\}", tag, frame), spans=tuple(tags))


def _invisible() -> Iterator[Line]:
    """Texts with what nobody sees between their letters, in decomposed letters, and with other hyphens."""
    hidden = itertools.cycle(_TEXTS["invisible"]["hidden"])
    changes: Sequence[Callable[[str, str], str]] = (
        lambda text, sign: _between(text, sign, 3),
        lambda text, sign: sign + text + sign,
        lambda text, sign: text.replace(" ", f"{sign} ").replace("e", f"e{sign}"),
        lambda text, sign: unicodedata.normalize("NFD", _between(text, sign, 7)),
        lambda text, sign: _between(text.replace("-", "\u2011"), sign, 5),
    )
    frames = FRAMES["invisible"]
    for number in range(NUM_LINES):
        frame = frames[number % len(frames)]
        change = changes[number % len(changes) if number < len(frames) else number // len(frames)]
        yield Line(kind="invisible", text=change(frame, next(hidden)), same_as=frame)


def _between(text: str, sign: str, step: int) -> str:
    return "".join(
        character + (sign if place % step == step - 1 else "") for place, character in enumerate(text)
    )


def _nests(answer: str) -> bool:
    opened: list[str] = []
    for slash, name, empty in re.findall(r"<(/?)([a-z][\w-]*)(?:\"[^\"]*\"|'[^']*'|[^<>\"'])*?(/?)>", answer):
        if name in ("img", "wbr", "input") or empty:
            continue
        if not slash:
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return not opened


@dataclass(frozen=True, kw_only=True)
class HardText:
    """A text with what its translation must and must not hold."""

    text: str
    kind: str
    must: Sequence[Sequence[str]]
    """Of each of these lists one must be there."""
    must_not: Sequence[str]
    is_html: bool

    def passes(self, answer: str) -> bool:
        """Whether the answer has all that it must, and nothing that it must not."""

        def read(text: str) -> str:
            return text if self.kind == "capitals" else text.casefold()

        answer = read(answer)
        has_all = all(any(read(word) in answer for word in words) for words in self.must)
        return has_all and not any(read(word) in answer for word in self.must_not)


def read_hard_texts(path: Path) -> list[HardText]:
    """The texts of a file of JSON lines. Raises MeasurementError, with the line."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry = json.loads(line)
            must_not, is_html = entry.get("must_not", ()), entry.get("format") == "html"
            given = {name: entry[name] for name in ("text", "kind", "must")}
            found.append(HardText(**given, must_not=must_not, is_html=is_html))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MeasurementError(f"{path}, line {number}: {error!r}") from error
    return found


def with_spans(sentences: Sequence[str], kind: str) -> list[tuple[str, str]]:
    """Each sentence with a span of that kind between two of its words, always the same, and the span."""
    chance = random.Random(kind)
    found = []
    for sentence, span in zip(sentences, itertools.cycle(INSERTED[kind]), strict=False):
        words = sentence.split(" ")
        words.insert(chance.randint(0, len(words) - 1), span)
        found.append((" ".join(words), span))
    return found


def with_tags(sentences: Sequence[str]) -> Iterator[str]:
    """Each sentence with an element around some of its words and an empty one between two, as HTML."""
    chance = random.Random("markup")
    for sentence in sentences:
        words = sentence.replace("&", "&amp;").replace("<", "&lt;").split(" ")
        first = chance.randrange(len(words))
        last = chance.randrange(first, len(words))
        words[first] = TAGS[0] + words[first]
        words[last] += TAGS[1]
        words.insert(chance.randint(0, len(words) - 1), TAGS[2])
        yield f"<p>{' '.join(words)}</p>"


def translate(
    system: BundleSystem, texts: Sequence[str], protection: Protection, *, is_html: bool = False
) -> list[TranslatedText]:
    """The texts' translations, sentence by sentence, as the service's callers get them."""
    options = replace(
        system.options,
        protection=protection,
        text_format=TextFormat.HTML if is_html else TextFormat.PLAIN,
        segmentation=Segmentation.SENTENCE,
    )
    return system.translate_texts(texts, options)
