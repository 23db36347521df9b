import pytest
from dragoman_bundle import Bundle
from tests.server.text.answering import shipped


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    return shipped()
