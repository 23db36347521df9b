"""Units sent to servers and their results read, over as many streams as it takes until all are done.

Several streams at once are each in a thread and over a connection of its own, spread over the servers.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from queue import SimpleQueue

from dragoman import errors
from dragoman.client import Client
from dragoman.connection.channel import RetryBudget
from dragoman.connection.route import Server
from dragoman.jobs.units import JobError, Share, Units
from dragoman.messages import TEXTS_PER_MESSAGE
from dragoman.settings import Settings
from dragoman.translation import StreamResult
from dragoman_files.format import Unit

FIRST_WAIT_SECONDS = 0.5
MAX_WAIT_ALONE_SECONDS = 30.0
MAX_WAIT_SECONDS = 5.0
"""The longest wait between tries of a server that is away while others work: it is used again that soon."""
AHEAD = 4
"""Windows of all streams that may be done while the first of them is not."""

OnWait = Callable[[errors.DragomanError, float], None]
"""Takes the reason why a stream waits, and for how many seconds."""


@dataclass(frozen=True, kw_only=True)
class Streams:
    """How units travel."""

    settings: Settings
    """The job's settings; their model becomes the one that translated the first units."""
    number: int
    """Streams that translate at once; a single one goes over the client's own connection."""
    window: int
    """Units of a stream that are under way at once."""
    patience_seconds: float
    """How long the servers may all fail, counted from the first failure after a result."""
    noun: str
    """The plural noun for the units."""

    def results(
        self, units: Iterator[Unit], client: Client, on_wait: OnWait, *, first: int, model: str | None
    ) -> Generator[StreamResult[Unit], None, None]:
        """The results of all units, in order; `first` is the number of the first.

        All streams ask for the model of the first result, or for `model`, whatever the server would choose
        meanwhile. Raises JobError where the model is gone, what reading the units raises, and DragomanError
        where the server refuses the units as a whole or stays away; all streams have ended then.
        """
        if self.number == 1:
            dealt = Units(units)
            budget = self._budget(MAX_WAIT_ALONE_SECONDS)
            yield from self._of_one(dealt.share(), lambda: nullcontext(client), budget, on_wait, model)
        else:
            dealt = Units(units, max_ahead=AHEAD * self.number * self.window)
            yield from self._of_several(dealt, Connections(client), on_wait, first, model)
        dealt.check_read()

    def _budget(self, max_wait_seconds: float, last_answer: Callable[[], float] = lambda: 0.0) -> RetryBudget:
        return RetryBudget(
            self.patience_seconds,
            first_wait_seconds=FIRST_WAIT_SECONDS,
            max_wait_seconds=max_wait_seconds,
            holds_waits=False,
            last_answer=last_answer,
        )

    def _of_one(
        self,
        share: Share,
        connect: Callable[[], AbstractContextManager[Client]],
        budget: RetryBudget,
        on_wait: OnWait,
        model: str | None,
    ) -> Generator[StreamResult[Unit], None, None]:
        """The results of a stream and its successors, in order. `connect` gives each the client that it goes
        over."""
        is_over = share.units.closed
        texts_per_message, window = TEXTS_PER_MESSAGE, self.window
        while True:
            try:
                with connect() as client:
                    stream = client.translate_stream(
                        ((unit, unit.text) for unit in share.stream()),
                        **asdict(replace(self.settings, model=model or self.settings.model)),
                        in_order=True,
                        window=window,
                        texts_per_message=texts_per_message,
                    )
                    with closing(stream):
                        for result in stream:
                            if isinstance(result.error, errors.UnavailableError | errors.OverloadedError):
                                raise result.error
                            budget.renew()
                            model = model or model_of(result)
                            share.done(result.id)
                            yield result
                if not share.units.has_more():
                    return
            except errors.ModelNotFoundError as error:
                if model is None:
                    raise
                raise JobError(
                    f"the server no longer has {model}, which translated the {self.noun} so far: {error}; "
                    "call again once it has, or begin anew with --restart, and --model for a certain one"
                ) from error
            except errors.DragomanError as error:
                if errors.is_over_transport(error):
                    # The server ends the stream without a word of which message it was: they get smaller,
                    # then come alone, until it is known.
                    if texts_per_message > 1:
                        texts_per_message = 1
                    elif window > 1:
                        window = 1
                    else:
                        unit = share.first
                        share.done(unit)
                        yield StreamResult(id=unit, translation=None, error=error)
                        texts_per_message, window = TEXTS_PER_MESSAGE, self.window
                    continue
                if not _is_transient(error):
                    raise
                share.give_back()
                seconds = budget.wait_seconds(error)
                if seconds is None:
                    raise
                on_wait(error, seconds)
                if is_over.wait(seconds):
                    return

    def _of_several(
        self, dealt: Units, connections: "Connections", on_wait: OnWait, first: int, model: str | None
    ) -> Generator[StreamResult[Unit], None, None]:
        """The results of several streams, in order. One begins alone, until its first translation has told
        the model of all."""
        # Results, why streams wait, what they fail by, and None of each that ends.
        arrived: SimpleQueue[StreamResult[Unit] | tuple[errors.DragomanError, float] | BaseException | None]
        arrived = SimpleQueue()

        def work(model: str | None) -> None:
            budget = self._budget(MAX_WAIT_SECONDS, lambda: dealt.answered_at)
            try:
                for result in self._of_one(
                    dealt.share(), connections.open, budget, lambda *why: arrived.put(why), model
                ):
                    arrived.put(result)
                arrived.put(None)
            except BaseException as error:
                arrived.put(error)

        threads: list[threading.Thread] = []
        # Results that came before those of earlier units.
        early: dict[int, StreamResult[Unit]] = {}
        num_ended, num_started = 0, 1 if model is None else self.number
        try:
            while True:
                while len(threads) < num_started:
                    thread = threading.Thread(target=work, args=(model,), name="dragoman-job", daemon=True)
                    threads.append(thread)
                    thread.start()
                if num_ended == num_started:
                    return
                item = arrived.get()
                if item is None:
                    num_ended += 1
                elif isinstance(item, BaseException):
                    raise item
                elif isinstance(item, tuple):
                    on_wait(*item)
                else:
                    early[item.id.number] = item
                while (result := early.pop(first, None)) is not None:
                    first += 1
                    dealt.hand_out()
                    model = model or model_of(result)
                    num_started = 1 if model is None else self.number
                    yield result
        finally:
            dealt.close()
            connections.close()
            for thread in threads:
                thread.join()


class Connections:
    """Clients of one server each. The next goes to a server with the fewest, and of these to the one that
    never failed, or failed the longest ago."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._num_open: Counter[Server] = Counter()
        self._failed_at: dict[Server, float] = {}
        self._open: set[Client] = set()
        self._closed = False
        # Guards all of the above.
        self._lock = threading.Lock()

    @contextmanager
    def open(self) -> Iterator[Client]:
        """A client of that server alone, with a connection of its own.

        What it fails by names the server. Raises UnavailableError where the servers' name is not known.
        """
        servers = self._client.servers()
        with self._lock:
            if self._closed:
                raise errors.ClientClosedError()
            server = min(servers, key=lambda each: (self._num_open[each], self._failed_at.get(each, 0.0)))
            self._num_open[server] += 1
            alone = self._client.at(server)
            self._open.add(alone)
        try:
            with alone:
                yield alone
        except errors.DragomanError as error:
            with self._lock:
                self._failed_at[server] = time.monotonic()
            if str(server) not in str(error):
                error.args = (f"{server}: {error}",)
            raise
        finally:
            with self._lock:
                self._num_open[server] -= 1
                self._open.discard(alone)

    def close(self) -> None:
        """Ends all of them, and lets none begin."""
        with self._lock:
            self._closed = True
            clients = list(self._open)
        for client in clients:
            client.close()


def model_of(result: StreamResult[Unit]) -> str | None:
    """The model as NAME/VERSION, or two with a space between; None of a unit that failed."""
    if result.translation is None:
        return None
    return " ".join(map(str, result.translation.path or [result.translation.model]))


def _is_transient(error: errors.DragomanError) -> bool:
    """Whether another stream may succeed.

    CANCELLED can only be the server's doing; ABORTED means the stream was idle, as when the job was
    suspended.
    """
    is_away = isinstance(error, errors.UnavailableError | errors.OverloadedError | errors.CallCancelledError)
    return is_away or error.status == "ABORTED"
