"""A bundle of a small model, and an engine over a decoder whose results are known."""

from collections.abc import Callable
from typing import Any

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
def build(request: pytest.FixtureRequest) -> Callable[..., House]:
    """Builds houses, whose engines are closed at the end."""

    def build(*arguments: Any, **options: Any) -> House:
        house = House(*arguments, **options)
        request.addfinalizer(house.engine.close)
        return house

    return build


@pytest.fixture
def house(build: Callable[..., House]) -> House:
    return build()
