"""Hard texts: lines with what must and must not stand in their translations."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from dragoman_server.offline.system import BundleSystem
from dragoman_server.text.options import Protection, TextFormat, TranslationOptions
from dragoman_server.text.segmentation import Segmentation
from dragoman_server.text.translated import TranslatedText


@dataclass(frozen=True, kw_only=True)
class HardText:
    """One of them."""

    text: str
    kind: str
    must: tuple[tuple[str, ...], ...]
    """Of each of these lists one must be there."""
    must_not: tuple[str, ...]
    is_html: bool

    def passes(self, answer: str) -> bool:
        """Whether the answer has all that it must, and nothing that it must not."""

        def read(text: str) -> str:
            return text if self.kind == "capitals" else text.casefold()

        answer = read(answer)
        has_all = all(any(read(word) in answer for word in words) for words in self.must)
        return has_all and not any(read(word) in answer for word in self.must_not)


def translate(
    system: BundleSystem, texts: Sequence[str], protection: Protection, *, is_html: bool = False
) -> list[TranslatedText]:
    """The texts' translations, sentence by sentence, as the service's callers get them."""
    options: TranslationOptions = replace(
        system.options,
        protection=protection,
        text_format=TextFormat.HTML if is_html else TextFormat.PLAIN,
        segmentation=Segmentation.SENTENCE,
    )
    return system.translate_texts(texts, options)


def read_hard_texts(path: Path) -> list[HardText]:
    """A file of JSON lines. Raises ClickException, with the line."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry: Mapping[str, object] = json.loads(line)
            found.append(_read(entry))
        except (ValueError, KeyError, TypeError) as error:
            raise click.ClickException(f"{path}, line {number}: {error!r}") from error
    return found


def _read(entry: Mapping[str, object]) -> HardText:
    must = entry["must"]
    assert isinstance(must, Sequence)
    must_not = entry.get("must_not", ())
    assert isinstance(must_not, Sequence)
    return HardText(
        text=str(entry["text"]),
        kind=str(entry["kind"]),
        must=tuple(tuple(words) for words in must),
        must_not=tuple(must_not),
        is_html=entry.get("format") == "html",
    )
