"""Sentences of a corpus with something put into each that must come out once, and as it was."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SPANS: Mapping[str, Sequence[str]] = {
    "placeholder": ["{name}", "{0}", "%s", "%1$s", "%(file)s", "${user}", "{{user}}", ":item",
                    "{n, plural, one {# Datei} other {# Dateien}}"],
    "url": ["https://example.com/pfad?a=1&b=2", "www.beispiel.de", "info@beispiel.de", "beispiel.de/hilfe"],
    "code": ["`config.yaml`", "`x = 1`", "/etc/hosts", "src/main.py"],
    "emoji": ["😀", "🌍", "👍🏽", "👩\u200d👩\u200d👧", "🇩🇪", "❤\ufe0f"],
    "unknown": ["Łukasz", "北京", "Владимир", "東京駅"],
    "number": ["2.500", "3,5", "1848", "17:30", "4711", "1.000.000", "3.5.2023"],
    "tag": ["#Berlin", "@anna_b"],
}  # fmt: skip
"""By kind."""


@dataclass(frozen=True, kw_only=True)
class Inserted:
    """A sentence with a span in it."""

    text: str
    span: str


def with_spans(sentences: Sequence[str], kind: str) -> list[Inserted]:
    """Each sentence with a span of that kind between two of its words, chosen by chance, always the same."""
    chance = random.Random(kind)
    found = []
    for sentence, span in zip(sentences, itertools.cycle(SPANS[kind]), strict=False):
        words = sentence.split(" ")
        words.insert(chance.randint(0, len(words) - 1), span)
        found.append(Inserted(text=" ".join(words), span=span))
    return found


def with_tags(sentences: Sequence[str]) -> Iterator[str]:
    """Each sentence with an element around some of its words and an empty one between two, as HTML."""
    chance = random.Random("markup")
    for sentence in sentences:
        words = sentence.replace("&", "&amp;").replace("<", "&lt;").split(" ")
        first = chance.randrange(len(words))
        last = chance.randrange(first, len(words))
        words[first] = '<a href="#x">' + words[first]
        words[last] += "</a>"
        words.insert(chance.randint(0, len(words) - 1), '<img src="y">')
        yield f"<p>{' '.join(words)}</p>"


TAGS = ('<a href="#x">', "</a>", '<img src="y">', "<p>", "</p>")
"""What each of those has once."""

TERMS: Mapping[str, str] = {
    "Haus": "house", "Hund": "dog", "Katze": "cat", "Buch": "book", "Auto": "car", "Wasser": "water",
    "Stadt": "city", "Freund": "friend", "Zeit": "time", "Geld": "money", "Arbeit": "work", "Bus": "bus",
    "Vater": "father", "Mutter": "mother", "Bruder": "brother", "Schwester": "sister", "Kind": "child",
    "Frau": "woman", "Mann": "man", "Tag": "day", "Jahr": "year", "Tür": "door", "Fenster": "window",
    "Brief": "letter", "Wetter": "weather", "Problem": "problem", "Frage": "question", "Antwort": "answer",
    "Zug": "train", "Schule": "school", "Bett": "bed", "Tisch": "table", "Film": "movie", "Musik": "music",
    "Zimmer": "room", "Idee": "idea", "Wahrheit": "truth", "Krieg": "war", "Leben": "life", "Welt": "world",
}  # fmt: skip
"""Words that are common in everyday sentences, and what they mostly are."""

OTHER_TERMS = {word: f"x{target}" for word, target in TERMS.items()}
"""The same words with translations that no model would choose."""
