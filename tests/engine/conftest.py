"""A bundle of small, real graphs."""

import io
from collections.abc import Iterator

import pytest
import sentencepiece
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.engine.house import House
from tests.engine.tiny_graphs import tiny_bundle


@pytest.fixture(scope="session", autouse=True)
def _remembered_traces(remembered_traces: None) -> None:
    """For every test here."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abc"]), model_writer=model, model_type="char", vocab_size=7, minloglevel=2
    )
    return Tokenizer(model.getvalue())


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("tiny"), tokenizer, ("fp32", "fp16"))


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.engine.close()
