"""Several engines over one decoder, each a thread with a batch of its own: how the cores of a CPU are used.

The threads of one matrix product wait for each other at every operator; engines wait for nobody.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.errors import EngineClosedError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.observer import Observer, SilentObserver
from dragoman_server.engine.queue_gauge import QueueGauge
from dragoman_server.engine.request import Priority, Sentence, SentenceResult


class EnginePool:
    """Deals sentences out to its engines; to its callers it is one of them."""

    def __init__(
        self,
        decoder: Decoder[Any],
        *,
        limits: EngineLimits,
        num_engines: int = 1,
        observer: Observer | None = None,
    ) -> None:
        """`limits.max_queue` holds for all engines together, the other limits for each of them.

        So many threads use the decoder at a time.
        """
        gauge = QueueGauge(observer or SilentObserver(), num_engines)
        self._limits = limits
        self._engines = [
            Engine(decoder, limits=limits, observer=gauge.part(number)) for number in range(num_engines)
        ]
        self._load = [0] * num_engines
        self._urgent_load = [0] * num_engines
        # Dealt out, and not yet with their engines.
        self._num_on_the_way = 0
        self._num_bulk_on_the_way = 0
        # Guards the four above. Not held while engines take sentences in, which for thousands takes a while.
        self._lock = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether sentences are decoded: its threads run, all of them."""
        return all(engine.is_alive for engine in self._engines)

    def start(self) -> None:
        """Starts the engines' threads."""
        for engine in self._engines:
            engine.start()

    def submit(self, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        """Accepts all the sentences or none; as `Engine.submit` in all else."""
        for sentence in sentences:
            self._engines[0].check(sentence)
        with self._lock:
            self._check_queue(sentences)
            shares = self._deal_out(sentences)
            self._note_on_the_way(sentences, 1)
        futures: dict[int, Future[SentenceResult]] = {}
        for engine, share in zip(self._engines, shares, strict=True):
            own = [sentences[place] for place in share]
            try:
                futures |= zip(share, engine.submit(own), strict=True)
            except EngineClosedError:
                for future in futures.values():
                    future.cancel()
                raise
            with self._lock:
                self._note_on_the_way(own, -1)
        for number, share in enumerate(shares):
            for place in share:
                futures[place].add_done_callback(partial(self._unload, number, sentences[place]))
        return [futures[place] for place in range(len(sentences))]

    def close(self) -> None:
        """Ends the engines after the steps they are in; what is left fails with EngineClosedError."""
        for engine in self._engines:
            engine.close()

    def _check_queue(self, sentences: Sequence[Sentence]) -> None:
        """Raises QueueFullError where all of them are more than may wait."""
        self._limits.check_queue(
            sentences,
            num_waiting=self._num_on_the_way + sum(engine.num_waiting for engine in self._engines),
            num_bulk_waiting=self._num_bulk_on_the_way
            + sum(engine.num_bulk_waiting for engine in self._engines),
        )

    def _note_on_the_way(self, sentences: Sequence[Sentence], sign: int) -> None:
        self._num_on_the_way += sign * len(sentences)
        self._num_bulk_on_the_way += sign * sum(each.priority is Priority.BULK for each in sentences)

    def _deal_out(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        """The numbers of each engine's sentences: each goes where least is to do.

        For an interactive one that is where least is to do that it would have to wait for.
        """
        shares: list[list[int]] = [[] for _ in self._engines]
        for number, sentence in enumerate(sentences):
            urgent = sentence.priority is Priority.INTERACTIVE
            loads = list(zip(self._urgent_load, self._load, strict=True)) if urgent else self._load
            chosen = min(range(len(loads)), key=loads.__getitem__)
            self._load[chosen] += _cost(sentence)
            self._urgent_load[chosen] += _cost(sentence) * urgent
            shares[chosen].append(number)
        return shares

    def _unload(self, number: int, sentence: Sentence, _: Future[SentenceResult]) -> None:
        with self._lock:
            self._load[number] -= _cost(sentence)
            self._urgent_load[number] -= _cost(sentence) * (sentence.priority is Priority.INTERACTIVE)


def _cost(sentence: Sentence) -> int:
    """What its decoding takes, up to a factor: outputs are about as long as sources."""
    return len(sentence.source) * sentence.options.beam_size
