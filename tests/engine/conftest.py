"""A bundle of a small model, and an engine over a decoder whose results are known."""

from collections.abc import Iterator

import pytest
from dragoman_bundle.bundle import Bundle
from tests.engine.exported import export_family
from tests.engine.house import House


@pytest.fixture(scope="session", autouse=True)
def _remembered_traces(remembered_traces: None) -> None:
    """For every test here."""


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_family("transformer-post", tmp_path_factory, ("fp32", "fp16"))


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.engine.close()
