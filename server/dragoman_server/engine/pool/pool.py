"""Several engines of one model, each with a batch of its own: how the cores of a CPU are used.

The threads of one matrix product wait for each other at every operator; engines wait for nobody.
"""

import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from dragoman_server.engine.errors import EngineClosedError, EngineLostError, QueueFullError
from dragoman_server.engine.limits import Admission
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.pool.process import EngineProcess
from dragoman_server.engine.request import Priority, Sentence, SentenceResult
from dragoman_server.engine.scheduling.pace import Throughput

Member = Engine | EngineProcess
"""An engine in a thread, or one or more in a process of their own."""


class Arrivals:
    """When the sentences of a priority came, for as long as they wait. One thread notes, and any may read.

    Pure: is told the time. Sentences of a caller leave the queue in the order in which they came, but for a
    bounded number that overtake, and callers take turns: those that wait are taken for the latest.
    """

    def __init__(self) -> None:
        # When some came, and how many had come by then in all.
        self._came: deque[tuple[float, int]] = deque()
        self._num_came = 0

    def note(self, now: float, number: int, num_waiting: int) -> None:
        """So many came, with whom `num_waiting` wait."""
        self._num_came += number
        self._came.append((now, self._num_came))
        while self._came and self._came[0][1] <= self._num_came - num_waiting:
            self._came.popleft()

    def num_before(self, moment: float, num_waiting: int) -> int:
        """How many of the `num_waiting` that wait came before a moment."""
        num_left = self._num_came - num_waiting
        last = 0
        for came_at, num_came in tuple(self._came):
            if came_at >= moment:
                break
            last = num_came
        return max(0, last - num_left)


class EnginePool:
    """Deals sentences out to its engines; to its callers it is one of them."""

    def __init__(self, engines: Sequence[Member], admission: Admission) -> None:
        """The limits' `max_queue` holds for all engines together, the others for each of them."""
        self._engines = engines
        self._admission = admission
        self._limits = admission.limits
        num_engines = len(engines)
        self._load = [0] * num_engines
        self._urgent_load = [0] * num_engines
        self._caller_load: dict[Priority, Counter[str]] = {priority: Counter() for priority in Priority}
        self._num_accepted = dict.fromkeys(Priority, 0)
        self._num_unanswered = 0
        self._arrivals = {priority: Arrivals() for priority in Priority}
        self._throughput = Throughput()
        # Guards the seven above. Not held while engines take sentences in, which for thousands takes a while.
        self._lock = threading.Lock()
        self._waiters: set[Callable[[], object]] = set()
        self.watch(lambda: None)
        for engine in engines:
            engine.watch(self._note_change)

    def num_waiting(self, priority: Priority) -> int:
        """Sentences of a priority that no batch has taken up, those on their way to an engine among them."""
        return self._num_accepted[priority] - sum(engine.num_left[priority] for engine in self._engines)

    def num_waiting_for(self, priority: Priority, seconds: float) -> int:
        """How many of them have waited for longer, but for those that overtook others."""
        moment = time.monotonic() - seconds
        with self._lock:
            return self._arrivals[priority].num_before(moment, self.num_waiting(priority))

    def max_waiting(self, priority: Priority) -> int:
        """How many of a priority may wait beside those of the others that do."""
        num_others = sum(self.num_waiting(other) for other in Priority if other is not priority)
        left = self._limits.max_queue - num_others
        return min(left, self._limits.max_bulk_queue) if priority is Priority.BULK else left

    def check_queue(self, coming: Mapping[Priority, int], caller: str = "") -> None:
        """Raises QueueFullError where so many sentences of each priority are more than may wait, also where
        the caller's would wait for too long.
        """
        waiting = {priority: self.num_waiting(priority) for priority in Priority}
        expected = {priority: self.expected_seconds(priority, caller) for priority in Priority}
        self._limits.check_queue(coming=coming, waiting=waiting, expected_seconds=expected)

    def expected_seconds(self, priority: Priority, caller: str = "") -> float:
        """How long a caller's accepted ones take, as far as known; 0 where none of the priority waits.

        Callers take turns: of each other counts as much as the caller has itself. The other priority is left
        out: many that overtake bulk make it wait, and must not keep it out.
        """
        if self.num_waiting(priority) <= 0:
            return 0.0
        loads = self._caller_load[priority]
        load = sum(min(others, loads[caller]) for others in tuple(loads.values()))
        return self._throughput.seconds(time.monotonic(), load)

    def has_room(self, priority: Priority, num_sentences: int, caller: str = "") -> bool:
        """Whether so many of a priority are let in at the moment."""
        try:
            self.check_queue({priority: num_sentences}, caller)
        except QueueFullError:
            return False
        return True

    @contextmanager
    def told_of_room(self, on_room: Callable[[], object]) -> Iterator[None]:
        """Meanwhile has `on_room` called, in any thread, whenever more may be let in than before."""
        self._waiters.add(on_room)
        try:
            yield
        finally:
            self._waiters.discard(on_room)

    @property
    def num_running(self) -> int:
        """Sentences that are being encoded or decoded."""
        return sum(engine.num_running for engine in self._engines)

    @property
    def num_engines(self) -> int:
        """Engines there are, whether they decode at the moment or not."""
        return sum(engine.num_engines for engine in self._engines)

    @property
    def max_rows(self) -> int:
        """Most rows that are decoded at a time, by all engines together."""
        return self.num_engines * self._limits.max_rows

    @property
    def num_alive(self) -> int:
        """Engines that decode."""
        return sum(engine.num_engines for engine in self._engines if engine.is_alive)

    @property
    def is_alive(self) -> bool:
        """Whether sentences are decoded."""
        return self.num_alive > 0

    @property
    def has_ended(self) -> bool:
        """Whether an engine ended that nothing brings back."""
        return any(engine.has_ended for engine in self._engines)

    def watch(self, on_change: Callable[[], None]) -> None:
        """Has `on_change` called, in any thread, whenever an engine ended or was replaced."""
        self._liveness = self.num_alive, self.has_ended
        self._on_change = on_change

    @property
    def pids(self) -> list[int]:
        """The processes that engines have of their own."""
        return [pid for engine in self._engines if (pid := engine.pid) is not None]

    def start(self) -> None:
        """Starts the engines, at the same time; where one can't be, none is left, and its error raised."""
        try:
            self._of_each(lambda engine: engine.start())
        except BaseException:
            self.close()
            raise

    def submit(self, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        """Accepts all sentences or none; as `Engine.submit`, but a future may end with EngineLostError too.

        They are of one caller. Raises SentenceError for a sentence that can never be decoded, QueueFullError,
        EngineLostError while no engine decodes, and EngineClosedError.
        """
        for sentence in sentences:
            self._admission.check(sentence)
        with self._lock:
            coming = Counter(sentence.priority for sentence in sentences)
            self.check_queue(coming, sentences[0].caller if sentences else "")
            shares = self._deal_out(sentences)
            self._count(sentences, 1)
            now = time.monotonic()
            for priority, number in coming.items():
                self._arrivals[priority].note(now, number, self.num_waiting(priority))
        futures: dict[int, Future[SentenceResult]] = {}
        for engine, share in zip(self._engines, shares, strict=True):
            # An engine that nothing is for sleeps on.
            if not share:
                continue
            try:
                accepted = engine.submit([sentences[place] for place in share])
            except EngineClosedError:
                for future in futures.values():
                    future.cancel()
                with self._lock:
                    self._count((s for place, s in enumerate(sentences) if place not in futures), -1)
                raise
            futures |= zip(share, accepted, strict=True)
        for number, share in enumerate(shares):
            for place in share:
                futures[place].add_done_callback(partial(self._unload, number, sentences[place]))
        return [futures[place] for place in range(len(sentences))]

    def close(self) -> None:
        """Ends the engines after the steps they are in; what is left fails with EngineClosedError."""
        # That is nothing to be told of.
        self.watch(lambda: None)
        self._of_each(lambda engine: engine.close())

    def _note_change(self) -> None:
        self._tell_waiters()
        if (liveness := (self.num_alive, self.has_ended)) != self._liveness:
            self._liveness = liveness
            self._on_change()

    def _tell_waiters(self) -> None:
        for on_room in tuple(self._waiters):
            on_room()

    def _of_each(self, do: Callable[[Member], None]) -> None:
        with ThreadPoolExecutor(len(self._engines)) as hands:
            # As a list: errors are raised when results are taken.
            list(hands.map(do, self._engines))

    def _count(self, sentences: Iterable[Sentence], sign: int) -> None:
        for sentence in sentences:
            self._num_accepted[sentence.priority] += sign
            self._num_unanswered += sign
            self._add_load(sentence, sign)

    def _add_load(self, sentence: Sentence, sign: int) -> None:
        loads = self._caller_load[sentence.priority]
        loads[sentence.caller] += sign * _cost(sentence)
        if not loads[sentence.caller]:
            del loads[sentence.caller]

    def _deal_out(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        """The numbers of each engine's sentences: each goes where least is to do. Raises EngineLostError.

        For an interactive one that is where least is to do that it would have to wait for.
        """
        shares: list[list[int]] = [[] for _ in self._engines]
        present = [number for number, engine in enumerate(self._engines) if not engine.is_restarting]
        if not present:
            raise EngineLostError("no engine of the model runs at the moment; another is being started")
        for priority in Priority:
            urgent = priority is Priority.INTERACTIVE
            loads = [(self._urgent_load[one] if urgent else 0, self._load[one], one) for one in present]
            heapq.heapify(loads)
            for number, sentence in enumerate(sentences):
                if sentence.priority is not priority:
                    continue
                urgent_load, load, engine = loads[0]
                cost = _cost(sentence)
                heapq.heapreplace(loads, (urgent_load + cost * urgent, load + cost, engine))
                shares[engine].append(number)
            for urgent_load, load, engine in loads:
                self._load[engine] = load
                if urgent:
                    self._urgent_load[engine] = urgent_load
        return shares

    def _unload(self, number: int, sentence: Sentence, future: Future[SentenceResult]) -> None:
        num_waiting = sum(self.num_waiting(priority) for priority in Priority)
        is_saturated = num_waiting > 0
        with self._lock:
            self._num_unanswered -= 1
            self._add_load(sentence, -1)
            self._load[number] -= _cost(sentence)
            self._urgent_load[number] -= _cost(sentence) * (sentence.priority is Priority.INTERACTIVE)
            if not future.cancelled() and future.exception() is None:
                max_load = self.max_rows * len(sentence.source)
                self._throughput.observe(
                    time.monotonic(),
                    _cost(sentence),
                    running=sum(self._load) * max(0.0, 1 - num_waiting / max(1, self._num_unanswered)),
                    share=1.0 if is_saturated else min(1.0, sum(self._load) / max_load),
                    is_saturated=is_saturated,
                )
        self._tell_waiters()


def _cost(sentence: Sentence) -> int:
    """The cost of its decoding, up to a factor: outputs are about as long as sources."""
    return len(sentence.source) * sentence.options.beam_size
