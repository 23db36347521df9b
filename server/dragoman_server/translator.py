"""Takes a request's texts through a model's engine without holding up the event loop.

Owns the way from texts to futures and back, and that cancelled work leaves the engine. Must not know gRPC.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dragoman_server.document import Document, TranslatedText, TranslationOptions, complete, prepare
from dragoman_server.engine import Sentence, SentenceResult
from dragoman_server.errors import InvalidRequestError, Violation
from dragoman_server.gathering import gather_results
from dragoman_server.length import UnitTooLongError
from dragoman_server.repository import Model

T = TypeVar("T")

# What the event loop can do without being missed, some two milliseconds; more goes to a thread. Joining takes
# about 0.5 µs a character and hypothesis, with alignments 8 µs.
_MAX_CHARACTERS_ON_LOOP = 4_000
_MAX_ALIGNED_CHARACTERS_ON_LOOP = 250


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """Texts for one model, checked against the server's limits."""

    model: Model
    texts: tuple[str, ...]
    options: TranslationOptions
    text_fields: tuple[str, ...]
    """For each text what the caller calls it, such as "texts[0]"."""


async def translate(request: TranslationRequest, *, timeout_seconds: float | None) -> list[TranslatedText]:
    """Translates the texts, one to one.

    Raises InvalidRequestError for a sentence that is too long under LengthPolicy.REJECT and for more
    sentences than the queue can ever hold, and what the engine raises. When cancelled, or when one sentence
    fails, the others leave the engine.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    on_loop = _is_small(request)
    documents = await _run(on_loop, lambda: _prepare(request, deadline))
    sentences = [sentence for document in documents for sentence in document.sentences]
    results = await _search(request, sentences)
    return await _run(on_loop, lambda: _complete(request.model, documents, results))


def _is_small(request: TranslationRequest) -> bool:
    options = request.options
    limit = _MAX_ALIGNED_CHARACTERS_ON_LOOP if options.return_alignments else _MAX_CHARACTERS_ON_LOOP
    return sum(map(len, request.texts)) * options.num_hypotheses <= limit


async def _run(on_loop: bool, work: Callable[[], T]) -> T:
    return work() if on_loop else await asyncio.to_thread(work)


def _prepare(request: TranslationRequest, deadline: float | None) -> list[Document]:
    documents = []
    violations = []
    for field, text in zip(request.text_fields, request.texts, strict=True):
        try:
            documents.append(prepare(text, request.model.bundle, request.options, deadline))
        except UnitTooLongError as error:
            violations.append(Violation(field=field, description=str(error)))
    if violations:
        raise InvalidRequestError(violations)
    return documents


async def _search(request: TranslationRequest, sentences: Sequence[Sentence]) -> list[SentenceResult]:
    model = request.model
    if len(sentences) > model.max_sentences:
        description = (
            f"{len(sentences)} sentences in all, and the queue takes {model.max_sentences}; "
            "send fewer at a time"
        )
        field = request.text_fields[0] if len(request.texts) == 1 else "texts"
        raise InvalidRequestError([Violation(field=field, description=description)])
    futures = model.engine.submit(sentences)
    try:
        return await gather_results(futures)
    finally:
        # What is finished does not mind.
        for future in futures:
            future.cancel()


def _complete(
    model: Model, documents: Sequence[Document], results: Sequence[SentenceResult]
) -> list[TranslatedText]:
    remaining = iter(results)
    return [
        complete(document, [next(remaining) for _ in document.sentences], model.bundle)
        for document in documents
    ]
