"""The texts within tags, such as `title`: translated apart, and written into the tags again.

Pure. What language the text says that it is in is changed, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Edit, Mapped, Span, moved
from dragoman_server.text.marks import Value
from dragoman_server.text.read.markup import start_tags
from dragoman_server.text.translated import TranslatedHypothesis, TranslatedText, whole_of, whole_text


@dataclass(frozen=True)
class Attributes:
    """The values of a text, which is no longer than all that it is part of."""

    text: str
    values: Sequence[Value]
    languages: tuple[str, str]

    @cached_property
    def distinct(self) -> dict[str, Span]:
        """The values that are translated, with the first place of each."""
        found: dict[str, Span] = {}
        for value in self.values:
            if not value.is_language:
                found.setdefault(self.text[slice(*value.span)], value.span)
        return found

    def close(self, outer: TranslatedText, of_values: Sequence[TranslatedText]) -> TranslatedText:
        """The translation of the text with those of its values in its tags."""
        parts = [outer, *of_values]
        sources = [self.text, *self.distinct]

        def written(rank: int) -> tuple[Mapped, list[TranslatedHypothesis]]:
            ranked = [part.at(rank, source) for part, source in zip(parts, sources, strict=True)]
            return self._written(*(hypothesis.text for hypothesis in ranked)), ranked

        def closed(rank: int) -> TranslatedHypothesis:
            out, ranked = written(rank)
            links = (replace(link, target=out.onto(link.target)) for link in ranked[0].alignments)
            return whole_of(ranked, out.text, links)

        out, _ = written(0)
        # Of a value's words all of it.
        warnings = [
            replace(warning, span=span)
            for part, span in zip(of_values, self.distinct.values(), strict=True)
            for warning in part.warnings
        ]
        return replace(
            whole_text(parts, closed),
            warnings=(*warnings, *outer.warnings),
            confidences=tuple(replace(each, target=out.onto(each.target)) for each in outer.confidences),
        )

    def _written(self, translation: str, *outputs: str) -> Mapped:
        """The translation of the text, with those of its values in its tags."""
        known = dict(zip(self.distinct, outputs, strict=True))
        tags: dict[Span, list[Edit]] = {}
        for value in self.values:
            raw = self.text[slice(*value.span)]
            is_renamed = value.is_language and primary_language(raw) == primary_language(self.languages[0])
            output = self.languages[1] if is_renamed else raw if value.is_language else known[raw]
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
        return Mapped.of(translation).edited(
            (span, written[translation[slice(*span)]])
            for span in start_tags(translation)
            if translation[slice(*span)] in written
        )
