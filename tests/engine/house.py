"""An engine over a decoder whose results are known, and what it tells of itself."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from itertools import pairwise
from random import Random
from typing import Any

from tests.engine.table_decoder import EOS, FloatArray, TableDecoder, Tokens, random_model

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.events import (
    BatchStepped,
    EngineLost,
    Event,
    Listener,
    Outcome,
    SentenceEnded,
    ignore,
)
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority, SearchOptions, Sentence, SentenceResult
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.engine.ticket import Ticket

VOCABULARY = 6


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.001)


def sentence(
    *source: int,
    steps: int = 4,
    beam_size: int = 1,
    deadline: float | None = None,
    target_prefix: Tokens = (),
    priority: Priority = Priority.INTERACTIVE,
) -> Sentence:
    options = searched(beam_size, steps, num_hypotheses=1)
    return Sentence(
        source=source, options=options, deadline=deadline, target_prefix=target_prefix, priority=priority
    )


def searched(
    beam_size: int, steps: int, num_hypotheses: int | None = None, length_penalty: float = 1.0
) -> SearchOptions:
    """A search of at most so many tokens, that gives all of its beam if no number is told."""
    return SearchOptions(
        beam_size=beam_size,
        num_hypotheses=num_hypotheses or beam_size,
        length_penalty=length_penalty,
        max_output_tokens=steps,
    )


def ticket(
    length: int = 5,
    beam_size: int = 1,
    deadline: float | None = None,
    priority: Priority = Priority.INTERACTIVE,
    arrival: int = 0,
) -> Ticket:
    """A sentence of that length that waits, of nine tokens at most."""
    wanted = sentence(*[3] * length, steps=9, beam_size=beam_size, deadline=deadline, priority=priority)
    return Ticket(sentence=wanted, accepted_at=0.0, arrival=arrival)


def decode(
    decoder: Decoder[Any], arrivals: Iterable[Sequence[Sentence]], limits: EngineLimits
) -> list[SentenceResult]:
    """Results in order of arrival; an engine runs while later ones arrive."""
    engine = Engine(decoder, limits=limits)
    engine.start()
    futures = [future for sentences in arrivals for future in engine.submit(sentences)]
    results = [future.result(timeout=60) for future in futures]
    engine.close()
    return results


def in_random_order(
    sentences: Sequence[Sentence], seed: int, num_calls: int
) -> tuple[list[int], list[list[Sentence]]]:
    """The numbers of all sentences as they arrive, and as many calls that they arrive in."""
    generator = Random(seed)
    order = generator.sample(range(len(sentences)), k=len(sentences))
    cuts = [0, *sorted(generator.sample(range(1, len(order)), k=num_calls - 1)), len(order)]
    return order, [[sentences[i] for i in order[a:b]] for a, b in pairwise(cuts)]


def endless(source: Tokens, prefix: Tokens) -> FloatArray:
    """Never ends by itself, so that a sentence takes exactly `max_output_tokens` steps."""
    scores = random_model(VOCABULARY)(source, prefix)
    scores[EOS] = -1e30
    return scores


class Recorder:
    """Keeps what the engine tells."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.steps: list[tuple[int, int, int, int]] = []
        self.num_losses = 0
        self.events: list[BatchStepped] = []

    def hear(self, event: Event) -> None:
        match event:
            case BatchStepped():
                assert 0 <= event.seconds <= event.busy_seconds
                assert 0 <= event.num_bulk_rows <= event.num_rows <= event.rows_in_use
                self.steps.append(
                    (event.num_sentences, event.num_rows, event.source_positions, event.padded_positions)
                )
                self.events.append(event)
            case SentenceEnded(outcome):
                self.outcomes[outcome] += 1
            case EngineLost():
                self.num_losses += 1


def pool_over(
    decoder: Decoder[Any],
    limits: EngineLimits | None = None,
    *,
    num_engines: int = 1,
    listener: Listener = ignore,
) -> EnginePool:
    """Engines that are threads of this process."""
    limits = limits or EngineLimits()
    engines = [Engine(decoder, limits=limits, listener=listener) for _ in range(num_engines)]
    return EnginePool(engines, Admission.to(decoder, limits))


class House:
    """An engine over a table decoder; `at_step` says what to do before the n-th step, counted from 1."""

    def __init__(
        self,
        limits: EngineLimits | None = None,
        model: object = endless,
        scheduler: type[Scheduler] = Scheduler,
    ) -> None:
        self.steps: list[list[Tokens]] = []
        self.at_step: dict[int, object] = {}
        self.futures: list[Future[SentenceResult]] = []
        """Of what was run, and of what `submit` submitted."""
        self.decoder = TableDecoder(model, VOCABULARY, self._observe)  # type: ignore[arg-type]
        self.recorder = Recorder()
        limits = limits or EngineLimits()
        self.engine = Engine(
            self.decoder,
            limits=limits,
            listener=self.recorder.hear,
            # Whoever has room joins at once.
            scheduler=scheduler(limits, encoding_turns=0.0),
        )

    def _observe(self, sources: list[Tokens]) -> None:
        self.steps.append(list(sources))
        if action := self.at_step.get(len(self.steps)):
            action()  # type: ignore[operator]

    def run(self, *sentences: Sentence) -> list[Future[SentenceResult]]:
        """Submits, starts and waits until everything ended, whatever `submit` submits meanwhile, too."""
        self.submit(*sentences)
        self.engine.start()
        while not all(future.done() for future in self.futures):
            wait(self.futures, timeout=30)
        return self.futures

    def submit(self, *sentences: Sentence) -> None:
        self.futures += self.engine.submit(sentences)

    def outcomes(self) -> Counter[Outcome]:
        """How sentences ended, once the engine is closed."""
        self.engine.close()
        return self.recorder.outcomes


def tokens_alone(wanted: Sentence) -> Tokens:
    """What an engine says that has nothing else to do."""
    house = House()
    [future] = house.run(wanted)
    house.engine.close()
    return future.result().hypotheses[0].tokens


ONE_PLACE = EngineLimits(max_rows=1, max_beam_size=1)
