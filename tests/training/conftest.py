"""What tests of training share."""

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.training.toy_pairs import toy_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return toy_tokenizer()
