"""Whatever comes and goes at whichever step, everybody gets the answer that is theirs."""

import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.house import House, sentence, tokens_alone

from dragoman_server.engine.errors import DeadlineExpiredError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority, Sentence, SentenceResult
from dragoman_server.engine.scheduling import scheduler


@dataclass(frozen=True)
class Arrival:
    """A sentence that is submitted before a step, and cancelled before another or late."""

    at: int
    source: int
    num_steps: int
    beam_size: int
    cancelled_at: int | None
    seconds_left: float | None
    priority: Priority

    def sentence(self) -> Sentence:
        return sentence(
            *range(self.source, 2 * self.source),
            steps=self.num_steps,
            beam_size=self.beam_size,
            deadline=None if self.seconds_left is None else time.monotonic() + self.seconds_left,
            priority=self.priority,
        )


@cache
def expected(source: int, num_steps: int, beam_size: int) -> tuple[int, ...]:
    return tokens_alone(Arrival(0, source, num_steps, beam_size, None, None, Priority.BULK).sentence())


arrivals = st.builds(
    Arrival,
    at=st.integers(0, 12),
    source=st.integers(1, 5),
    num_steps=st.integers(1, 5),
    beam_size=st.sampled_from([1, 2]),
    cancelled_at=st.none() | st.integers(1, 14),
    seconds_left=st.none() | st.sampled_from([-1.0, 0.001, 0.01]),
    priority=st.sampled_from(Priority),
)


@given(
    workload=st.lists(arrivals, max_size=12),
    max_rows=st.integers(2, 8),
    continuous=st.booleans(),
    max_bulk_slowdown=st.sampled_from([1.0, 3.0]),
    calm_seconds=st.sampled_from([1e-6, 3.0]),
)
def test_everybody_gets_their_own_answer(
    workload: list[Arrival], max_rows: int, continuous: bool, max_bulk_slowdown: float, calm_seconds: float
) -> None:
    limits = EngineLimits(
        max_rows=max_rows, max_beam_size=2, continuous=continuous, max_bulk_slowdown=max_bulk_slowdown
    )
    with patch.object(scheduler, "CALM_SECONDS", calm_seconds):
        run(workload, House(limits))


def run(workload: list[Arrival], house: House) -> None:
    futures: dict[int, Future[SentenceResult]] = {}
    lock = threading.Lock()

    def come_and_go(step: int) -> None:
        with lock:
            come = [n for n, arrival in enumerate(workload) if arrival.at == step and n not in futures]
            futures.update(
                zip(come, house.engine.submit([workload[n].sentence() for n in come]), strict=True)
            )
            for number, future in futures.items():
                if workload[number].cancelled_at == step:
                    future.cancel()

    for step in range(1, 15):
        house.at_step[step] = lambda step=step: come_and_go(step)  # type: ignore[misc]
    come_and_go(0)
    house.engine.start()
    # Steps are taken as long as there is something to do: the others come when there is not.
    wait(list(futures.values()), timeout=30)
    for step in range(1, 13):
        come_and_go(step)
        wait(list(futures.values()), timeout=30)
    house.engine.close()
    assert len(futures) == len(workload)
    assert sum(house.recorder.outcomes.values()) == len(workload)
    for number, future in futures.items():
        arrival = workload[number]
        if future.cancelled():
            continue
        if (error := future.exception()) is not None:
            assert isinstance(error, DeadlineExpiredError)
            assert arrival.seconds_left is not None
        else:
            tokens = expected(arrival.source, arrival.num_steps, arrival.beam_size)
            assert future.result().hypotheses[0].tokens == tokens
