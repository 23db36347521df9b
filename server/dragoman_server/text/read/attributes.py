"""The texts within tags, such as `title`: read before all else of a text, and written into its tags again.

Pure. A text of HTML gets those of its tags in front of it, each a block of its own; its translation has their
translations there. What language the text says that it is in is changed, too.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Edit, Mapped, Span, moved
from dragoman_server.text.translated import SentenceConfidence, TranslatedHypothesis, TranslatedText

_END = "<hr/>"
_StartTags = Callable[[str], Iterable[Span]]
_ATTRIBUTE = re.compile(r"""\s([^\s/>=]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")


class Value(NamedTuple):
    """What stands in an attribute; spans count the caller's code points."""

    tag: Span
    span: Span
    is_language: bool


def values_of(name: str, raw: str, start: int, read: frozenset[str]) -> Iterator[Value]:
    """What is to be changed in a start tag of this name; `read` are attributes that are translated, of some
    elements alone if a name is before the attribute's, as in "meta.description"."""
    found = list(_ATTRIBUTE.finditer(raw))
    stated = {match[1].lower(): match[match.lastindex or 0].lower() for match in found}
    kinds = (stated.get("type", ""), stated.get("name", ""), stated.get("property", ""))
    known = {f"{name}.{kind}" for kind in kinds} & read
    for match in found:
        attribute, rank = match[1].lower(), match.lastindex or 0
        value = match[rank]
        is_language = name == "html" and attribute in ("lang", "xml:lang")
        is_read = attribute in read or (attribute in ("value", "content") and bool(known))
        if is_language or (is_read and "<" not in value and any(map(str.isalpha, value))):
            tag = start, start + len(raw)
            yield Value(tag, moved(match.span(rank), start), is_language)


@dataclass(frozen=True)
class Attributes:
    """The values of a text, which is no longer than all that it is part of."""

    text: str
    values: Sequence[Value]
    languages: tuple[str, str]

    @cached_property
    def _distinct(self) -> dict[str, Span]:
        """The values that are translated, with the first place of each."""
        found: dict[str, Span] = {}
        for value in self.values:
            if not value.is_language:
                found.setdefault(self.text[slice(*value.span)], value.span)
        return found

    @cached_property
    def _places(self) -> list[tuple[int, Span]]:
        """Where each value begins in all, and where in the text it stands."""
        starts = accumulate((len(value) + len(_END) for value in self._distinct), initial=0)
        return list(zip(starts, self._distinct.values(), strict=False))

    @cached_property
    def extended(self) -> str:
        """The text behind its values."""
        return "".join(value + _END for value in self._distinct) + self.text

    def restored(self, found: TranslatedText, start_tags: _StartTags) -> TranslatedText:
        """The translation of the text, from that of all."""
        offset = len(self.extended) - len(self.text)
        hypotheses = tuple(self._restored(hypothesis, offset, start_tags) for hypothesis in found.hypotheses)
        return replace(
            found,
            text=hypotheses[0].text if hypotheses else self._written(found.text, start_tags)[1].text,
            hypotheses=hypotheses,
            confidences=tuple(self._confidences(found, offset, start_tags)),
            warnings=tuple(
                replace(warning, span=self._place(warning.span, offset)) for warning in found.warnings
            ),
        )

    def _confidences(
        self, found: TranslatedText, offset: int, start_tags: _StartTags
    ) -> Iterator[SentenceConfidence]:
        """Those of the text's own sentences."""
        if not found.confidences:
            return
        length, out = self._written(found.text, start_tags)
        for each in found.confidences:
            if each.source[0] >= offset:
                target = out.onto(moved(each.target, -length))
                yield replace(each, source=moved(each.source, -offset), target=target)

    def _place(self, span: Span, offset: int) -> Span:
        """The range of the text that one of all stands for; of a value's words all of it."""
        if span[0] >= offset:
            return moved(span, -offset)
        return self._places[bisect_right(self._places, span[0], key=lambda place: place[0]) - 1][1]

    def _restored(
        self, hypothesis: TranslatedHypothesis, offset: int, start_tags: _StartTags
    ) -> TranslatedHypothesis:
        length, out = self._written(hypothesis.text, start_tags)
        links = (link for link in hypothesis.alignments if link.source[0] >= offset)
        return replace(
            hypothesis,
            text=out.text,
            alignments=tuple(
                replace(
                    link, source=moved(link.source, -offset), target=out.onto(moved(link.target, -length))
                )
                for link in links
            ),
        )

    def _written(self, translation: str, start_tags: _StartTags) -> tuple[int, Mapped]:
        """How much of the translation of all is before the text's, and that with the values in its tags."""
        distinct = self._distinct
        *translated, rest = translation.split(_END, len(distinct))
        outputs = dict(zip(distinct, translated, strict=True))
        tags: dict[Span, list[Edit]] = {}
        for value in self.values:
            raw = self.text[slice(*value.span)]
            is_renamed = value.is_language and primary_language(raw) == primary_language(self.languages[0])
            output = (
                outputs.get(raw, raw) if not value.is_language else self.languages[1] if is_renamed else raw
            )
            quote = self.text[value.span[0] - 1]
            if quote in "\"'":
                output = output.replace(quote, f"&#{ord(quote)};")
            else:
                output = '"' + output.replace('"', "&#34;") + '"'
            tags.setdefault(value.tag, []).append((moved(value.span, -value.tag[0]), output))
        written = {
            self.text[slice(*tag)]: Mapped.of(self.text[slice(*tag)]).edited(edits).text
            for tag, edits in tags.items()
        }
        changed = [
            (span, written[rest[slice(*span)]]) for span in start_tags(rest) if rest[slice(*span)] in written
        ]
        return len(translation) - len(rest), Mapped.of(rest).edited(changed)
