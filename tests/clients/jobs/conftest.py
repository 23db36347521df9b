"""A client of the test server."""

import pytest

from dragoman import Client


@pytest.fixture
def client(server):
    with Client(server.address) as connected:
        yield connected
