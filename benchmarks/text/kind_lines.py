"""A hundred texts of each kind of what must come through whatever the model, made of frames and spans."""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.text.frames import ELEMENTS, EMPTY, FRAMES, HIDDEN, SPANS_OF_FRAMES
from dragoman_server.text.protection.scripts import has_no_letter_of

NUM_LINES = 100
"""Of each kind."""


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
    spans = SPANS_OF_FRAMES[kind]
    if kind == "unknown":
        spans = [span for span in spans if _is_latin(span) or has_no_letter_of(span, language)]
    return _spans(kind, spans)


KINDS = tuple(FRAMES)


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
    elements, empty = itertools.cycle(ELEMENTS), itertools.cycle(EMPTY)
    for number in range(NUM_LINES):
        frame = FRAMES["markup"][number % len(FRAMES["markup"])]
        chosen = {mark: next(elements) for mark in ("1", "2")}
        tags: list[str] = []

        def tag(found: re.Match[str], chosen: dict[str, str] = chosen, tags: list[str] = tags) -> str:
            mark = found[1]
            if mark == "0":
                made = next(empty)
            elif mark.startswith("/"):
                made = f"</{chosen[mark[1:]].split()[0]}>"
            else:
                made = f"<{chosen[mark]}>"
            tags.append(made)
            return made

        yield Line(kind="markup", text=re.sub(r"\{(/?\d)\}", tag, frame), spans=tuple(tags))


def _invisible() -> Iterator[Line]:
    """Texts with what nobody sees between their letters, in decomposed letters, and with other hyphens."""
    hidden = itertools.cycle(HIDDEN)
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
