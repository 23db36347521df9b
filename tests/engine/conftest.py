"""A bundle of small, real graphs."""

from collections.abc import Iterator

import pytest
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.engine.house import House
from tests.engine.tiny_graphs import tiny_bundle
from tests.pieces import train_pieces


@pytest.fixture(scope="session", autouse=True)
def _remembered_traces(remembered_traces: None) -> None:
    """For every test here."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_pieces(["abc"], 7))


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("tiny"), tokenizer, ("fp32", "fp16"))


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.engine.close()
