"""What tests of processes share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine import openers
from tests.engine.house import Recorder
from tests.engine.table_decoder import TableDecoder

from dragoman_server.engine.events import Listener
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.pool.process import EngineProcess
from dragoman_server.engine.request import Sentence

ROOT = Path(__file__).parents[3]
Start = Callable[..., EngineProcess]


@pytest.fixture(autouse=True)
def _tests_are_importable_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker unpickles its opener, which is a function of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def start(recorder: Recorder) -> Iterator[Start]:
    """Starts an engine by its opener, with the recorder as its listener if it is given no other."""
    started: list[EngineProcess] = []

    def start(
        opener: Callable[[], TableDecoder],
        limits: EngineLimits | None = None,
        *,
        listener: Listener = recorder.hear,
        warm_up: Sentence | None = None,
        timeout_seconds: float = 30.0,
        num_engines: int = 1,
    ) -> EngineProcess:
        engine = EngineProcess(
            opener,
            limits=limits or EngineLimits(),
            listener=listener,
            warm_up=warm_up,
            timeout_seconds=timeout_seconds,
            num_engines=num_engines,
        )
        started.append(engine)
        engine.start()
        return engine

    yield start
    for engine in started:
        engine.close()


@pytest.fixture
def pair() -> Iterator[tuple[EnginePool, list[EngineProcess]]]:
    """Two slow engines in processes of their own, started."""
    limits = EngineLimits(max_rows=8, max_beam_size=1)
    engines = [EngineProcess(openers.open_slow, limits=limits, timeout_seconds=2.0) for _ in range(2)]
    pool = EnginePool(engines, Admission.to(openers.open_slow(), limits))
    pool.start()
    yield pool, engines
    pool.close()
