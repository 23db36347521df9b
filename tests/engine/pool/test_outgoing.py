"""Who sends to a process never waits for it, and what was sent arrives whole and in order."""

import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest

from dragoman_server.engine.pool.pipe import Outgoing


@pytest.fixture
def pipe() -> Iterator[tuple[Outgoing, Connection]]:
    reader, writer = os.pipe()
    outgoing, incoming = Outgoing(writer), Connection(reader, writable=False)
    yield outgoing, incoming
    outgoing.close()
    incoming.close()


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "dragoman-engine-writer"]


def test_more_than_a_pipe_takes_is_kept_until_somebody_reads(pipe: tuple[Outgoing, Connection]) -> None:
    outgoing, incoming = pipe
    sent = [bytes([number]) * 50_000 for number in range(20)]
    for message in sent:
        outgoing.send(message)
    assert [incoming.recv() for _ in sent] == sent
    # What is small goes at once, without another thread.
    end = time.monotonic() + 30
    while writers() and time.monotonic() < end:
        time.sleep(0.01)
    outgoing.send("last")
    assert not writers()
    assert incoming.recv() == "last"


def test_a_closed_one_ends_at_the_other_side_even_while_much_is_left(
    pipe: tuple[Outgoing, Connection],
) -> None:
    outgoing, incoming = pipe
    outgoing.send(b"a" * 1_000_000)
    outgoing.close()
    outgoing.send("nobody gets it")
    with pytest.raises((EOFError, OSError)):
        incoming.recv()


def test_nothing_happens_where_nobody_can_read_any_more(pipe: tuple[Outgoing, Connection]) -> None:
    outgoing, incoming = pipe
    outgoing.send(b"a" * 1_000_000)
    incoming.close()
    outgoing.send("nobody gets it")
