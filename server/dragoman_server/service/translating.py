"""Takes a request's texts through a model's engine without holding up the event loop.

Owns the way from texts to futures and back, the threads for it, and that cancelled work leaves the engine.
Must not know gRPC.
"""

import asyncio
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TypeVar

from dragoman_server.engine import Priority
from dragoman_server.errors import Violation, raise_if_any, refusal
from dragoman_server.models.model import Model
from dragoman_server.service.searching import Futures, Stages, search
from dragoman_server.text.align.pairs import (
    AlignedPair,
    Pair,
    PairOptions,
    PairTooLongError,
    complete_pair,
    prepare_pair,
)
from dragoman_server.text.ask.fit import TextTooLongError, UnitTooLongError
from dragoman_server.text.find.terms import TermOutputError
from dragoman_server.text.mapped import Span
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.stages import Document, advance, complete, prepare
from dragoman_server.text.translated import TranslatedText
from dragoman_server.text.words import holds_letter
from dragoman_server.turns import FairThreads
from dragoman_server.wanted import Wanted

T = TypeVar("T")

# A single text of so many, times its hypotheses, is taken from text to answer on the event loop, which is not
# missed for the two milliseconds that it takes at most; more goes to a thread.
_MAX_CHARACTERS_ON_LOOP = 100

# More would only take turns at the interpreter, and keep the event loop from its own.
_THREADS_PER_PRIORITY = 2

# Of each text so many characters are looked at on the event loop for something to translate.
_MAX_CHARACTERS_LOOKED_AT = 100


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """Texts for one model, checked against the server's limits."""

    model: Model
    texts: tuple[str, ...]
    options: TranslationOptions
    text_fields: tuple[str, ...]
    """The caller's name of each text, such as "texts[0]"."""
    ranges: tuple[tuple[Span, ...], ...] = ()
    """The protected ranges of each text, in code points; empty for none of any text."""


@dataclass(frozen=True, kw_only=True)
class AlignmentRequest:
    """Texts and their translations, for one model, checked against the server's limits."""

    model: Model
    pairs: tuple[tuple[str, str], ...]
    options: PairOptions


class Translator:
    """Cuts, tokenizes and joins texts beside the event loop, each priority's in threads of its own.

    So no interactive request waits until those of a job are tokenized.
    """

    def __init__(self) -> None:
        self._coming = _threads("coming")
        # Apart: what was let in goes on, and fills the queue, before more is tokenized that it may not hold.
        self._accepted = _threads("accepted")

    def close(self) -> None:
        """Ends the threads. What has not begun is cancelled."""
        for threads in (*self._coming.values(), *self._accepted.values()):
            threads.close()

    async def translate(
        self,
        request: TranslationRequest,
        write: Callable[[list[TranslatedText]], T],
        *,
        wanted: Wanted,
        waits: bool = False,
        stages: Stages | None = None,
    ) -> T:
        """Translates the texts, one to one, and returns what `write` makes of them, maybe in another thread.

        Where it `waits` for room in the queue, it does so in the order of those of its model and priority.
        An interactive request of more than `max_interactive_tokens` is decoded as bulk.
        Raises InvalidRequestError for a text that is too long, a sentence that is under LengthPolicy.REJECT
        and for more sentences than the queue can ever hold, and what the engine raises; QueueFullError only
        where it doesn't wait, and before anything is tokenized where a sentence per text is too much.
        When cancelled, or when one sentence fails, the others leave the engine. `stages` is told of each.
        Raises UnwantedError where it is not `wanted` any more; a thread that is at its texts ends with that.
        """
        stages = stages or Stages()
        stages.begin()
        texts, caller = [] if waits else request.texts, wanted.caller
        check_room = _room_check(request.model, texts, request.options.priority, caller)
        check_room()
        is_small = _is_small(request)
        coming = None if is_small else self._coming[request.options.priority].of(caller)
        executor = None if is_small else self._accepted[request.options.priority].of(caller)
        documents = await _run(coming, lambda: _prepare(request, wanted, check_room))
        stages.end_text()
        priority = _priority(request.options, _num_tokens(documents))
        is_first, waited_seconds = True, 0.0
        while True:
            sentences = [
                sentence if sentence.priority is priority else replace(sentence, priority=priority)
                for document in documents
                for sentence in document.sentences
            ]
            futures: Futures = []
            # What follows from answers is not refused any more: it waits for room, which there can be.
            portion = len(sentences) if is_first else request.model.max_sentences[priority]
            for start in range(0, len(sentences), max(portion, 1)):
                some_sentences, may_wait = sentences[start : start + portion], waits or not is_first
                seconds, some = await search(
                    executor, request.model, priority, some_sentences, waits=may_wait, caller=caller
                )
                waited_seconds += seconds
                futures += some
                stages.end_search(seconds, [future.result() for future in some])
            go_on = functools.partial(_go_on, documents, futures, waited_seconds, write)
            documents, written = await _run(executor, go_on)
            stages.end_text()
            if written:
                request.model.metrics.on_text_work(stages.seconds("text"), request.options.priority)
                return written[0]
            is_first = False

    async def align(
        self,
        request: AlignmentRequest,
        write: Callable[[list[AlignedPair]], T],
        *,
        wanted: Wanted,
        stages: Stages | None = None,
    ) -> T:
        """Links the words of pairs, one to one, and returns what `write` makes of them, in another thread.

        Raises InvalidRequestError for a pair that is too long and for more parts than the queue can ever
        hold, UnwantedError as `translate` does, and what the engine raises. When cancelled, or when one part
        fails, the others leave the engine. `stages` is told of each.
        """
        stages = stages or Stages()
        stages.begin()
        model = request.model
        sources, caller = [source for source, _ in request.pairs], wanted.caller
        check_room = _room_check(model, sources, request.options.priority, caller)
        check_room()
        executor = self._accepted[request.options.priority].of(caller)
        coming = self._coming[request.options.priority].of(caller)
        pairs = await _run(coming, lambda: _prepare_pairs(request, wanted, check_room))
        stages.end_text()
        sentences = [sentence for pair in pairs for sentence in pair.sentences]
        _, futures = await search(
            executor, model, request.options.priority, sentences, waits=False, caller=caller
        )
        stages.end_search(0.0, [future.result() for future in futures])
        remaining = iter(futures)

        def complete_all() -> T:
            return write(
                [
                    complete_pair(pair, [next(remaining).result() for _ in pair.sentences], model.bundle)
                    for pair in wanted.each(pairs)
                ]
            )

        completed = await _run(executor, complete_all)
        stages.end_text()
        return completed


def _threads(of: str) -> dict[Priority, FairThreads]:
    names = {priority: f"dragoman-{priority.name.lower()}-{of}" for priority in Priority}
    return {priority: FairThreads(_THREADS_PER_PRIORITY, name) for priority, name in names.items()}


def _room_check(model: Model, texts: Sequence[str], priority: Priority, caller: str) -> Callable[[], None]:
    """A check that raises QueueFullError while the queue has no room for a sentence of each text with any."""
    num_sentences = sum(holds_letter(text[:_MAX_CHARACTERS_LOOKED_AT]) for text in texts)
    # What the queue can never hold is told otherwise, once it is certain.
    if num_sentences > model.max_sentences[priority]:
        num_sentences = 0
    return lambda: model.engine.check_queue({priority: num_sentences}, caller)


def _is_small(request: TranslationRequest) -> bool:
    """Finders of thousands of terms are made when they are first asked."""
    num_characters = sum(map(len, request.texts)) * request.options.num_searched_hypotheses
    is_short = len(request.texts) == 1 and num_characters <= _MAX_CHARACTERS_ON_LOOP
    return is_short and not request.options.protection.finders


async def _run(executor: Executor | None, work: Callable[[], T]) -> T:
    """Runs work in an executor; without one it is done at once, on the event loop."""
    if executor is None:
        return work()
    return await asyncio.get_running_loop().run_in_executor(executor, work)


def _prepare(request: TranslationRequest, wanted: Wanted, check_room: Callable[[], None]) -> list[Document]:
    """Raises InvalidRequestError, for too many sentences as soon as they are, and UnwantedError.

    What many calls at once bring fills the queue while it is tokenized: each text is begun only if
    `check_room` raises nothing, so that a call that will be refused costs and waits for nothing more.
    """
    documents: list[Document] = []
    violations = []
    num_sentences = num_tokens = 0
    ranges = request.ranges or ((),) * len(request.texts)
    bundle = request.model.bundle.tagged(request.options.source_tag)
    for field, text, of_text in zip(request.text_fields, request.texts, ranges, strict=True):
        wanted.check()
        check_room()
        try:
            documents.append(prepare(text, bundle, request.options, wanted.deadline, of_text, wanted))
        except (TextTooLongError, UnitTooLongError, TermOutputError) as error:
            violations.append(Violation(field, str(error)))
            continue
        num_sentences += len(documents[-1].sentences)
        num_tokens += _num_tokens(documents[-1:])
        _check_number(request, num_sentences, _priority(request.options, num_tokens))
    raise_if_any(violations)
    return documents


def _prepare_pairs(request: AlignmentRequest, wanted: Wanted, check_room: Callable[[], None]) -> list[Pair]:
    """Raises InvalidRequestError and UnwantedError; `check_room` as in `_prepare`."""
    pairs: list[Pair] = []
    violations = []
    for index, (source, target) in enumerate(request.pairs):
        wanted.check()
        check_room()
        try:
            pairs.append(prepare_pair(source, target, request.model.bundle, request.options, wanted))
        except PairTooLongError as error:
            violations.append(Violation(f"pairs[{index}].{error.side}", str(error)))
    raise_if_any(violations)
    sentences = [sentence for pair in pairs for sentence in pair.sentences]
    priority, limit = request.options.priority, request.options.max_interactive_tokens
    if limit is not None and sum(len(sentence.source) for sentence in sentences) > limit:
        priority = Priority.BULK
        pairs = [pair.at(priority) for pair in pairs]
    if len(sentences) > (most := request.model.max_sentences[priority]):
        description = f"have {len(sentences)} lines to link, and the queue takes {most}; send fewer at a time"
        raise refusal("pairs", description)
    return pairs


def _num_tokens(documents: Sequence[Document]) -> int:
    return sum(len(sentence.source) for document in documents for sentence in document.sentences)


def _priority(options: TranslationOptions, num_tokens: int) -> Priority:
    """The priority that a request of so many tokens is decoded with."""
    limit = options.max_interactive_tokens
    return Priority.BULK if limit is not None and num_tokens > limit else options.priority


def _check_number(request: TranslationRequest, num_sentences: int, priority: Priority) -> None:
    limit = request.model.max_sentences[priority]
    if num_sentences > limit:
        long = "" if priority is request.options.priority else ", so long that they are decoded as bulk"
        takes = f"the queue takes {limit}; send fewer at a time"
        description = f"has at least {num_sentences} sentences{long}, and {takes}"
        field = request.text_fields[0] if len(request.texts) == 1 else "texts"
        raise refusal(field, description)


def _go_on(
    documents: Sequence[Document],
    futures: Futures,
    waited_seconds: float,
    write: Callable[[list[TranslatedText]], T],
) -> tuple[list[Document], list[T]]:
    """The documents with these results, and what is written of them once they have no more sentences."""
    remaining = iter(futures)
    results = ([next(remaining).result() for _ in document.sentences] for document in documents)
    advanced = list(map(advance, documents, results))
    if any(document.sentences for document in advanced):
        return advanced, []
    return advanced, [write([complete(document, waited_seconds=waited_seconds) for document in advanced])]
