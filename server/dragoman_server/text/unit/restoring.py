"""An answer of the model as it goes out: masks replaced by what they stand for, tags and emoji set in.

Every code point of the answer leads to where it is in the text that goes out.
"""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_server.text.cleaning import Span
from dragoman_server.text.protection.masks import occurrences
from dragoman_server.text.protection.protected import Protected
from dragoman_server.text.unit.placing import Floating
from dragoman_server.text.unit.rendering import Mask


@dataclass(frozen=True, kw_only=True)
class Restored:
    """The text of an answer as it goes out."""

    text: str
    starts: Sequence[int]
    """For each code point of the answer, where its text begins in the restored one."""
    ends: Sequence[int]
    """And where that ends."""

    def of_answer(self, span: Span) -> Span:
        """Where a span of the answer is, which must not be empty."""
        return self.starts[span[0]], self.ends[span[1] - 1]


def find_masks(masks: Sequence[Mask], answer: str) -> list[tuple[Span, Protected]] | None:
    """Where each mask stands in an answer, in its order; None unless each stands there once."""
    found = []
    for mask in masks:
        places = occurrences(mask.word, answer)
        if len(places) != 1:
            return None
        found.append((places[0], mask.item))
    return sorted(found, key=lambda position: position[0])


def restore(
    answer: str,
    *,
    replaced: Sequence[tuple[Span, Protected]],
    inserted: Sequence[Floating],
    output_of: Callable[[Protected], str],
    in_capitals: bool,
    is_markup: bool,
) -> Restored:
    """Puts together what goes out. `inserted` is in order, and in no place within what is `replaced`."""
    if not (replaced or inserted or in_capitals or is_markup):
        length = len(answer)
        return Restored(text=answer, starts=range(length), ends=range(1, length + 1))
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    length = 0

    def write(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += len(text)

    replacements = iter([*replaced, None])
    insertions = iter([*inserted, None])
    replacement, insertion = next(replacements), next(insertions)
    position = 0
    while position < len(answer) or insertion is not None:
        if insertion is not None and (insertion.position <= position or position >= len(answer)):
            skipped = _set_in(insertion, write, parts, answer[position : position + 1])
            if skipped:
                starts.append(length - len(insertion.text))
                ends.append(length)
                position += 1
            insertion = next(insertions)
            continue
        if replacement is not None and replacement[0][0] == position:
            (start, end), item = replacement
            before = length
            write(output_of(item))
            starts += [before] * (end - start)
            ends += [length] * (end - start)
            position = end
            replacement = next(replacements)
            continue
        character = answer[position].upper() if in_capitals else answer[position]
        starts.append(length)
        write(html.escape(character, quote=False) if is_markup else character)
        ends.append(length)
        position += 1
    return Restored(text="".join(parts), starts=starts, ends=ends)


def _set_in(insertion: Floating, write: Callable[[str], None], parts: Sequence[str], following: str) -> bool:
    """Whether it took the place of the space that follows."""
    last = next((part[-1] for part in reversed(parts) if part), " ")
    if insertion.replaces_space:
        write(insertion.text)
        return following == " "
    # A number that stands beside another is not to be a part of it.
    is_number = last.isdigit() and insertion.text[:1].isdigit()
    if is_number or (insertion.has_space_before and not last.isspace()):
        write(" ")
    write(insertion.text)
    if insertion.has_space_behind and following.isalnum():
        write(" ")
    return False
