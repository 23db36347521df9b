"""Texts of each kind of what must come through whatever the model.

They are drawn by a seed: frames are filled with what a grammar makes. Sentences of a corpus have spans put
in, and a file has hard texts.
"""

import html
import io
import itertools
import json
import random
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import polib
from icu4py.messageformat import MessageFormat

from benchmarks.measuring import MeasurementError
from benchmarks.scenarios.text import quantities
from dragoman_files.format import FormatOptions, Input, Unit
from dragoman_files.opening import open_format
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
_MARKS = str.maketrans({**dict.fromkeys("„“”«»", '"'), **dict.fromkeys("‚‘’", "'"), "…": "..."})
_READ = re.compile(r" (?:title|alt)=\"[^\"]*\"")
"""What tags have for people, which is translated."""
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
    languages: tuple[str, str] = ("", "")
    """The languages that a message is translated between."""

    @property
    def is_html(self) -> bool:
        """Whether the text has tags."""
        return self.kind == "markup"

    def passes(self, answer: str, other: str | None = None) -> bool:
        """Whether the answer has all that it must; `other` is the answer to `same_as`."""
        if self.same_as is not None:
            # What a model can't read passes through, with all that is in it.
            return answer == other or (answer, other) == (self.text, self.same_as)
        if self.kind == "quantity":
            return all(re.search(span, answer) for span in self.spans)
        if self.kind == "message":
            return _is_message(answer, self)
        if self.kind == "sign":
            return _signs(answer) == _signs(self.text)
        if self.is_html and not _nests(answer):
            return False
        text, answer = _READ.sub("", self.text), _READ.sub("", answer)
        return all(
            answer.count(span) == text.count(span) for span in (_READ.sub("", one) for one in self.spans)
        )


def lines(kind: str, languages: tuple[str, str], seed: int = 0) -> Iterator[Line]:
    """The texts of a kind for a model of these languages, always the same of one seed."""
    source, target = languages
    chance = random.Random(f"{seed} {kind} {source}")
    if kind == "markup":
        return _markup(chance)
    if kind == "invisible":
        return _invisible()
    if kind == "quantity":
        return _quantities(chance, source, target)
    if kind == "message":
        return _different(_messages(chance, languages))
    spans = _TEXTS["spans"][kind]
    if kind == "unknown":
        spans = [span for span in spans if _is_latin(span) or has_no_letter_of(span, source)]
    return _different(_spans(kind, spans, chance))


def expand(text: str, chance: random.Random) -> str:
    """The text with each name in ⟨…⟩ replaced by one of what the grammar says of it."""
    return re.sub("⟨(.*?)⟩", lambda name: expand(chance.choice(_TEXTS["grammar"][name[1]]), chance), text)


def _spans(kind: str, chosen: Sequence[str], chance: random.Random) -> Iterator[Line]:
    for frame in itertools.cycle(FRAMES[kind]):
        used = tuple(expand(chance.choice(chosen), chance) for _ in range(frame.count("§")))
        parts = itertools.chain(*zip(frame.split("§"), (*used, ""), strict=True))
        yield Line(kind=kind, text="".join(parts), spans=used)


def _different(drawn: Iterator[Line]) -> Iterator[Line]:
    """The first that are not the same."""
    known: set[str] = set()
    while len(known) < NUM_LINES and (line := next(drawn, None)):
        if line.text not in known:
            yield line
        known.add(line.text)


def _is_latin(span: str) -> bool:
    return unicodedata.name(span[0]).startswith("LATIN")


def _quantities(chance: random.Random, source: str, target: str) -> Iterator[Line]:
    frames = _TEXTS["quantities"].get(source, ["§"])
    for number in range(NUM_LINES):
        written, answer = quantities.draw(chance, source, target)
        # What has no letter is no text.
        used = frames[number % len(frames)] if any(map(str.isalpha, written)) else frames[0]
        yield Line(kind="quantity", text=used.replace("§", written), spans=(answer,))


def _messages(chance: random.Random, languages: tuple[str, str]) -> Iterator[Line]:
    for frame in itertools.cycle(_TEXTS["messages"].get(languages[0], [])):
        yield Line(kind="message", text=expand(frame, chance), languages=languages)


def _is_message(answer: str, line: Line) -> bool:
    """Whether ICU shows none of the longer words of its source for it, and the same values."""
    for number in (0, 1, 2, 3, 5, 21):
        numbers = dict.fromkeys((*_TEXTS["grammar"]["n"], "m"), number)
        for name in ("female", "other"):
            values: dict[str, Any] = dict.fromkeys(_TEXTS["grammar"]["word"], name)
            values |= {**numbers, "d": date(2024, 4, 3)}
            try:
                shown = [
                    MessageFormat(message, language).format(values)
                    for message, language in zip((line.text, answer), line.languages, strict=True)
                ]
            except ValueError:
                return False
            values_shown = [Counter(re.findall(r"\d+|female", text)) for text in shown]
            same = {name, "April", *_TEXTS["grammar"]["word"], "user"}
            words = [set(re.findall(r"[^\W\d_]{4,}", text)) - same for text in shown]
            if values_shown[0] != values_shown[1] or not words[0].isdisjoint(words[1]):
                return False
    return True


def _signs(text: str) -> tuple[str, ...]:
    """The marks of a sentence and who is said to speak, however they are written."""
    speaker = re.match(r"\w+:(?=\s)", text)
    return (
        speaker[0] if speaker else "",
        *re.findall(r"[()\[\]\"!?:;…]|\.(?!\d)|(?<!\w)[-–—](?= )", text.translate(_MARKS)),
    )


def _markup(chance: random.Random) -> Iterator[Line]:
    elements, empty = _TEXTS["markup"]["elements"], _TEXTS["markup"]["empty"]
    for frame in itertools.islice(itertools.cycle(FRAMES["markup"]), NUM_LINES):
        chosen = dict(zip("12", chance.sample(elements, 2), strict=True))
        tags: list[str] = []

        def tag(found: re.Match[str], chosen: dict[str, str] = chosen, tags: list[str] = tags) -> str:
            mark = found[1]
            if mark == "0":
                made = str(chance.choice(empty))
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
    """Whether each element ends within the one that it begins in, and has words."""
    opened: list[tuple[str, int]] = []
    for tag in re.finditer(r"<(/?)([a-z][\w-]*)(?:\"[^\"]*\"|'[^']*'|[^<>\"'])*?(/?)>", answer):
        slash, name, empty = tag.groups()
        if name in ("img", "wbr", "input") or empty:
            continue
        if not slash:
            opened.append((name, tag.end()))
            continue
        if not opened or opened[-1][0] != name:
            return False
        if not re.search(r"\w", re.sub("<.*?>", "", answer[opened.pop()[1] : tag.start()])):
            return False
    return not opened


@dataclass(frozen=True, kw_only=True)
class HardText:
    """A text with what its translation must and must not hold."""

    text: str
    kind: str
    must: Sequence[Sequence[str]]
    """Lists of words, of each of which one must be there."""
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


def translate_in(name: str, system: BundleSystem, texts: Sequence[str]) -> list[tuple[str, bool]]:
    """The texts' translations, and whether any was warned of, where they stand in plain text ("plain"), are
    HTML ("markup"), are in one ("html"), or in a catalogue of messages ("po")."""
    units: list[Unit] = []
    if name == "html":
        sent = [html.escape(text, quote=False) for text in texts]
    elif name == "po":
        messages = polib.POFile()
        messages.metadata = {
            "Content-Type": "text/plain; charset=UTF-8",
            "Plural-Forms": "nplurals=2; plural=(n != 1);",
        }
        messages += [polib.POEntry(msgid=text) for text in texts]
        stream = io.BytesIO(str(messages).encode())
        units = list(
            open_format("po", FormatOptions()).units(Input(name="po", stream=stream, position=lambda: 0))
        )
        sent = [unit.text for unit in units]
    else:
        sent = list(texts)
    found = translate(system, sent, Protection(), is_html=name in ("html", "markup"))
    answers = [each.text for each in found]
    if name == "html":
        answers = list(map(html.unescape, answers))
    warned = [bool(each.warnings) for each in found]
    if name == "po":
        written = b"".join(unit.write(answer, {}) for unit, answer in zip(units, answers, strict=True))
        entries = {entry.msgid: entry.msgstr for entry in polib.pofile(written.decode())}
        is_warned = dict(zip(sent, warned, strict=True))
        return [(entries[text] or text, is_warned.get(text, False)) for text in texts]
    return list(zip(answers, warned, strict=True))


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
