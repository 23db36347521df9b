"""Drills: real servers under faults for DRILL_SECONDS each, 3 by default, and every promise asserted."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shipped import shipped_bundle

from benchmarks.servers import Server

BUNDLE = shipped_bundle("de-en")
QUIET_SECONDS = 30.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every drill as long."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.long)


@pytest.fixture
def seconds() -> float:
    """How long there are faults; starting and stopping servers come on top."""
    return float(os.environ.get("DRILL_SECONDS", "3"))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder of models with the shipped bundle in it, for a drill to change."""
    models = tmp_path / "models"
    (models / "de-en").mkdir(parents=True)
    (models / "de-en" / "1").symlink_to(BUNDLE, target_is_directory=True)
    return models


@pytest.fixture
def server(models: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with the options that a test's parameter names; once the callers have gone, it is in order."""
    with Server(models, tmp_path, getattr(request, "param", None)) as server:
        yield server
        assert server.is_alive
        until = time.monotonic() + QUIET_SECONDS
        while (left := _unfinished(server)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not left
        assert not [entry for entry in server.entries() if "exc_info" in entry]
        assert server.stop() == 0


def _unfinished(server: Server) -> dict[str, float]:
    found = {name: server.metric(f"dragoman_{name}_sentences") for name in ("queue", "running")}
    # The health checks of clients that are closed, too.
    started, handled = (
        server.metric(f"grpc_server_{name}_total", grpc_service="dragoman.v1.TranslationService")
        for name in ("started", "handled")
    )
    found["calls"] = started - handled
    return {name: value for name, value in found.items() if value}
