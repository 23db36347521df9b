"""An engine's turns in virtual time: the scheduler decides, and costs are added up."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.scenarios.policy.virtual_engine import VirtualEngine
from benchmarks.scenarios.policy.workload import Length, Workload
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority, SearchOptions, Sentence
from dragoman_server.engine.ticket import Ticket


@dataclass(eq=False)
class _Call:
    """Sentences that came together."""

    came_at: float
    num_left: int


@dataclass(kw_only=True)
class Outcome:
    """What became of a workload."""

    call_seconds: list[float] = field(default_factory=list)
    """The seconds of each interactive call, from its arrival to its last answer."""
    num_answered: dict[Priority, int] = field(default_factory=lambda: dict.fromkeys(Priority, 0))
    """Sentences answered, by priority."""
    seconds: float = 0.0
    """Virtual time that they were counted in."""
    num_encodings: int = 0
    """Groups encoded."""
    num_encoded: int = 0
    """Sentences in them: those that were set back count again."""


class Simulation:
    """One engine and one workload."""

    def __init__(self, workload: Workload, lengths: Sequence[Length], seed: int) -> None:
        self._workload = workload
        self._lengths = lengths
        self._rng = random.Random(seed)
        self._engine = VirtualEngine(EngineLimits())
        self._now = 0.0
        self._counts_from = workload.seconds / 10
        self._calls: dict[Ticket, _Call] = {}
        self._num_called = 0
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Lets the workload come and go."""
        workload = self._workload
        arrivals = workload.arrivals(self._rng)
        next_at = next(arrivals, None)
        for _ in range(workload.offline):
            self._call(0.0)
        for _ in range(workload.clients):
            self._call(0.0)
        while self._now < workload.seconds or (workload.offline and self._calls):
            while next_at is not None and next_at <= self._now:
                self._call(next_at)
                next_at = next(arrivals, None)
            while self._num_waiting(Priority.INTERACTIVE) < workload.waiting_callers:
                self._call(self._now)
            while self._num_of_job() < workload.waiting_bulk:
                self._add(workload.beam_sizes[-1], Priority.BULK)
            turn = self._engine.next_turn(self._now)
            if turn.lane is not None:
                self._now, finished = self._engine.take(turn, self._now)
                for ticket in finished:
                    self._finish(ticket)
            elif next_at is not None:
                self._now = next_at
            else:
                break
        self._outcome.seconds = self._now - self._counts_from
        self._outcome.num_encodings = self._engine.num_encodings
        self._outcome.num_encoded = self._engine.num_encoded
        return self._outcome

    def _finish(self, ticket: Ticket) -> None:
        counts = self._now >= self._counts_from
        self._outcome.num_answered[ticket.sentence.priority] += counts
        if (call := self._calls.pop(ticket, None)) is None:
            return
        call.num_left -= 1
        if call.num_left:
            return
        if call.came_at >= self._counts_from:
            self._outcome.call_seconds.append(self._now - call.came_at)
        if self._workload.clients:
            self._call(self._now)

    def _call(self, now: float) -> None:
        call = _Call(now, self._workload.sentences_a_call)
        beam_size = self._workload.beam_sizes[self._num_called % len(self._workload.beam_sizes)]
        self._num_called += 1
        for _ in range(call.num_left):
            self._calls[self._add(beam_size, Priority.INTERACTIVE)] = call

    def _add(self, beam_size: int, priority: Priority) -> Ticket:
        length = self._rng.choice(self._lengths)
        options = SearchOptions(
            beam_size=beam_size, num_hypotheses=1, length_penalty=1.0, max_output_tokens=2 * length.steps
        )
        sentence = Sentence(source=(3,) * length.source_tokens, options=options, priority=priority)
        ticket = Ticket(sentence=sentence, accepted_at=self._now)
        self._engine.add([ticket], [length.steps])
        return ticket

    def _num_waiting(self, priority: Priority) -> int:
        return self._engine.scheduler.num_waiting_of(priority)

    def _num_of_job(self) -> int:
        return self._engine.num_unfinished - len(self._calls)
