"""Whether an answer of the model has what it was not shown as a mask: numbers and terms."""

from collections.abc import Sequence

from dragoman_bundle import Bundle

from dragoman_server.text.cleaning import Span
from dragoman_server.text.protection.numbers import Number, missing_numbers
from dragoman_server.text.protection.protected import Protected, SpanKind
from dragoman_server.text.source import Source
from dragoman_server.text.unit.attempt import Task
from dragoman_server.text.unit.rendering import Rendered
from dragoman_server.text.words import goes_on


def without_masks(answer: str, replaced: Sequence[tuple[Span, Protected]]) -> str:
    """An answer without its masks."""
    parts = []
    end = 0
    for (start, stop), _ in replaced:
        parts.append(answer[end:start])
        end = stop
    return " ".join((*parts, answer[end:]))


def lost_numbers(
    source: Source, task: Task, rendered: Rendered, answer: str, bundle: Bundle
) -> tuple[Protected, ...]:
    """The numbers of a task that an answer without its masks lacks."""
    masked = [mask.item.span for mask in rendered.masks]
    open_numbers = {
        item.span: item
        for item in task.numbers
        if not any(start <= item.span[0] and item.span[1] <= end for start, end in masked)
    }
    if not open_numbers:
        return ()
    text = source.cleaned.tokenizer_text
    numbers = [Number(span=span, text=text[slice(*span)]) for span in open_numbers]
    manifest = bundle.manifest
    missing = missing_numbers(
        numbers, answer, source_language=manifest.source_language, target_language=manifest.target_language
    )
    return tuple(open_numbers[number.span] for number in missing)


def lacks_terms(task: Task, rendered: Rendered, answer: str) -> bool:
    """Whether an answer lacks a term that was left to the model."""
    masked = {mask.item for mask in rendered.masks}
    outputs = [
        item.output
        for item in task.items
        if item.kind is SpanKind.TERM and item not in masked and item.output
    ]
    if not outputs:
        return False
    folded = answer.casefold()
    # Longest first: a term may be a part of another.
    for output in sorted(outputs, key=len, reverse=True):
        start = _find_word(output.casefold(), folded)
        if start is None:
            return True
        folded = folded[:start] + " " + folded[start + len(output.casefold()) :]
    return False


def _find_word(word: str, text: str) -> int | None:
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (goes_on(text, start) or goes_on(text, end)):
            return start
        start = text.find(word, start + 1)
    return None
