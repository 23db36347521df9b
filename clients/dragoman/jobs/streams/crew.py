"""Several streams at once, each in a thread and over a connection of its own, spread over the servers."""

import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from dragoman.client import Client
from dragoman.connection.route import Server
from dragoman.errors import ClientClosedError, DragomanError
from dragoman.jobs.streams.spread import Notice, Spread
from dragoman.jobs.streams.streaming import Streaming, Waits, model_of
from dragoman.translation import StreamResult
from dragoman_files.unit import Unit

LONGEST_WAIT_SECONDS = 5.0
"""Between tries of a server that is away while others work: it is used again that soon."""
AHEAD = 4
"""Windows of all streams that may be done while the first of them is not."""


class Roster:
    """Which server the next stream goes to: one with the fewest, and of these the one that never failed, or
    failed the longest ago."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._streams: Counter[Server] = Counter()
        self._failed_at: dict[Server, float] = {}
        self._open: set[Client] = set()
        self._closed = False
        # Guards all of the above.
        self._lock = threading.Lock()

    @contextmanager
    def connect(self) -> Iterator[Client]:
        """A client of that server alone, with a connection of its own.

        What it fails by names the server. Raises UnavailableError where the servers' name is not known.
        """
        servers = self._client.servers()
        with self._lock:
            if self._closed:
                raise ClientClosedError()
            server = min(
                servers, key=lambda candidate: (self._streams[candidate], self._failed_at.get(candidate, 0.0))
            )
            self._streams[server] += 1
            alone = self._client.at(server)
            self._open.add(alone)
        try:
            with alone:
                yield alone
        except DragomanError as error:
            with self._lock:
                self._failed_at[server] = time.monotonic()
            if str(server) not in str(error):
                error.args = (f"{server}: {error}",)
            raise
        finally:
            with self._lock:
                self._streams[server] -= 1
                self._open.discard(alone)

    def close(self) -> None:
        """Ends all streams, and lets none begin."""
        with self._lock:
            self._closed = True
            clients = list(self._open)
        for client in clients:
            client.close()


def results_of_several(
    units: Iterator[Unit],
    client: Client,
    streaming: Streaming,
    *,
    num_streams: int,
    patience_seconds: float,
    first: int,
    model: str | None,
) -> Generator[StreamResult[Unit] | Notice, None, None]:
    """The results of all units in order, and why streams wait, by so many streams at once.

    `first` is the number of the first unit. One stream begins alone, until its first translation has told
    the model of all. Patience ends where no stream at all has had an answer for so long.
    Raises what `Streaming.results` does; all streams have ended then.
    """
    max_ahead = AHEAD * num_streams * streaming.window
    spread, roster = Spread(units, first=first, max_ahead=max_ahead), Roster(client)

    def work(model: str | None) -> None:
        def wait(error: DragomanError, seconds: float) -> bool:
            if spread.closed.is_set():
                return False
            spread.notice(error, seconds)
            return not spread.closed.wait(seconds)

        waits = Waits(
            patience_seconds,
            longest_seconds=LONGEST_WAIT_SECONDS,
            wait=wait,
            last_answer=lambda: spread.answered_at,
        )
        try:
            for result in streaming.results(spread.share(), roster.connect, waits, model):
                spread.put(result)
        except BaseException as error:
            spread.fail(error)

    threads: list[threading.Thread] = []

    def start(number: int, model: str | None) -> None:
        for _ in range(number):
            threads.append(threading.Thread(target=work, args=(model,), name="dragoman-job", daemon=True))
            threads[-1].start()

    try:
        start(1 if model is None else num_streams, model)
        for item in spread.results():
            if isinstance(item, StreamResult) and len(threads) < num_streams:
                model = model_of(item)
                if model is not None:
                    start(num_streams - len(threads), model)
            yield item
    finally:
        spread.close()
        roster.close()
        for thread in threads:
            thread.join()
