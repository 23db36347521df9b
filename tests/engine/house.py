"""An engine over a decoder whose results are known, and what it tells of itself."""

from collections import Counter
from concurrent.futures import Future, wait
from typing import Any

from tests.engine.table_decoder import EOS, FloatArray, TableDecoder, Tokens, random_model

from dragoman_server.engine.admission import Admission
from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.observer import Observer, Outcome, SilentObserver
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority, SearchOptions, Sentence, SentenceResult
from dragoman_server.engine.scheduling.scheduler import Scheduler

VOCABULARY = 6


def sentence(
    *source: int,
    steps: int = 4,
    beam_size: int = 1,
    deadline: float | None = None,
    target_prefix: Tokens = (),
    priority: Priority = Priority.INTERACTIVE,
) -> Sentence:
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=1, length_penalty=1.0, max_output_tokens=steps
    )
    return Sentence(
        source=source, options=options, deadline=deadline, target_prefix=target_prefix, priority=priority
    )


def endless(source: Tokens, prefix: Tokens) -> FloatArray:
    """Never ends by itself, so that a sentence takes exactly `max_output_tokens` steps."""
    scores = random_model(VOCABULARY)(source, prefix)
    scores[EOS] = -1e30
    return scores


class Recorder(SilentObserver):
    """Keeps what the engine tells."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.steps: list[tuple[int, int, int, int]] = []
        self.num_encodes = 0
        self.num_losses = 0

    def on_encode(self, seconds: float) -> None:
        assert seconds >= 0
        self.num_encodes += 1

    def on_step(
        self,
        *,
        num_sentences: int,
        num_rows: int,
        source_positions: int,
        padded_positions: int,
        seconds: float,
    ) -> None:
        assert seconds >= 0
        self.steps.append((num_sentences, num_rows, source_positions, padded_positions))

    def on_loss(self) -> None:
        self.num_losses += 1

    def on_finish(self, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1


def pool_over(
    decoder: Decoder[Any],
    limits: EngineLimits | None = None,
    *,
    num_engines: int = 1,
    observer: Observer | None = None,
) -> EnginePool:
    """Engines that are threads of this process."""
    limits = limits or EngineLimits()
    engines = [Engine(decoder, limits=limits, observer=observer) for _ in range(num_engines)]
    return EnginePool(engines, Admission.to(decoder, limits))


class House:
    """An engine over a table decoder; `at_step` says what to do before the n-th step, counted from 1."""

    def __init__(self, limits: EngineLimits | None = None, model: object = endless) -> None:
        self.steps: list[list[Tokens]] = []
        self.at_step: dict[int, object] = {}
        self.decoder = TableDecoder(model, VOCABULARY, self._observe)  # type: ignore[arg-type]
        self.recorder = Recorder()
        limits = limits or EngineLimits()
        self.engine = Engine(
            self.decoder,
            limits=limits,
            observer=self.recorder,
            # Whoever has room joins at once.
            scheduler=Scheduler(limits, encoding_turns=0.0),
        )

    def _observe(self, sources: list[Tokens]) -> None:
        self.steps.append(list(sources))
        if action := self.at_step.get(len(self.steps)):
            action()  # type: ignore[operator]

    def run(self, *sentences: Sentence) -> list[Future[SentenceResult]]:
        """Submits, starts and waits until everything ended."""
        futures = self.engine.submit(sentences)
        self.engine.start()
        wait(futures, timeout=30)
        return futures
