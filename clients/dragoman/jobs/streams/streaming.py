"""Units sent to a server and their results read, over as many streams as it takes until all are done."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from dragoman.client import Client
from dragoman.errors import (
    CallCancelledError,
    DragomanError,
    ModelNotFoundError,
    OverloadedError,
    UnavailableError,
    is_over_transport,
)
from dragoman.jobs.errors import JobError
from dragoman.messages import TEXTS_PER_MESSAGE
from dragoman.settings import Settings
from dragoman.translation import StreamResult
from dragoman_files.unit import Unit

FIRST_WAIT_SECONDS = 0.5


class Work(Protocol):
    """The units of a stream, and of the ones after it."""

    def stream(self) -> Iterator[Unit]:
        """All units that are not done, from the first. Ends what earlier calls returned."""

    @property
    def first(self) -> Unit:
        """The first unit that is not done, of those that were read."""

    def done(self, unit: Unit) -> None:
        """Strikes out the first unit, which `unit` must be."""

    def give_back(self) -> None:
        """Its server is away: others may do what is not done."""

    def has_more(self) -> bool:
        """Whether another stream is needed, once one has ended well; waits until that is known."""


class Waits:
    """Ever longer waits for a server that is away, and an end of them."""

    def __init__(
        self,
        patience_seconds: float,
        *,
        longest_seconds: float,
        wait: Callable[[DragomanError, float], bool],
        last_answer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`wait` waits so long, and says whether to go on. `last_answer` says when others were answered, on
        the clock of time.monotonic: patience counts from then."""
        self._patience_seconds = patience_seconds
        self._longest_seconds = longest_seconds
        self._wait = wait
        self._last_answer = last_answer
        self.renew()

    def renew(self) -> None:
        """The server has answered."""
        self._wait_seconds = FIRST_WAIT_SECONDS
        self._away_since: float | None = None

    def wait(self, error: DragomanError) -> bool:
        """Waits, and says whether to go on. Raises the error where the patience is at its end."""
        failed_at = time.monotonic()
        self._away_since = failed_at if self._away_since is None else self._away_since
        if failed_at - max(self._away_since, self._last_answer()) >= self._patience_seconds:
            raise error
        seconds = self._wait_seconds
        if isinstance(error, OverloadedError | UnavailableError):
            seconds = max(seconds, error.retry_after_seconds or 0.0)
        self._wait_seconds = min(2 * seconds, self._longest_seconds)
        return self._wait(error, seconds)


@dataclass(frozen=True, kw_only=True)
class Streaming:
    """How units travel."""

    settings: Settings
    """The job's settings; their model becomes the one that translated the first units."""
    window: int
    """Units of a stream that are under way at once."""
    noun: str
    """The plural noun for the units."""

    def results(
        self,
        work: Work,
        connect: Callable[[], AbstractContextManager[Client]],
        waits: Waits,
        model: str | None,
    ) -> Generator[StreamResult[Unit], None, None]:
        """The results of all units of `work`, in order.

        All streams ask for the model of the first result, or for `model`, whatever the server would choose
        meanwhile. `connect` gives each the client that it goes over. Raises JobError where the model is gone,
        DragomanError where the server refuses the units as a whole or stays away.
        """
        texts_per_message, window = TEXTS_PER_MESSAGE, self.window
        while True:
            try:
                with connect() as client:
                    stream = client.translate_stream(
                        ((unit, unit.text) for unit in work.stream()),
                        **asdict(replace(self.settings, model=model or self.settings.model)),
                        in_order=True,
                        window=window,
                        texts_per_message=texts_per_message,
                    )
                    with closing(stream):
                        for result in stream:
                            if isinstance(result.error, UnavailableError | OverloadedError):
                                raise result.error
                            waits.renew()
                            model = model or model_of(result)
                            work.done(result.id)
                            yield result
                if not work.has_more():
                    return
            except ModelNotFoundError as error:
                if model is None:
                    raise
                raise JobError(
                    f"the server no longer has {model}, which translated the {self.noun} so far: {error}; "
                    "call again once it has, or begin anew with --restart, and --model for a certain one"
                ) from error
            except DragomanError as error:
                if is_over_transport(error):
                    # The server ends the stream without a word of which message it was: they get smaller,
                    # then come alone, until it is known.
                    if texts_per_message > 1:
                        texts_per_message = 1
                    elif window > 1:
                        window = 1
                    else:
                        unit = work.first
                        work.done(unit)
                        yield StreamResult(id=unit, translation=None, error=error)
                        texts_per_message, window = TEXTS_PER_MESSAGE, self.window
                    continue
                if not _is_transient(error):
                    raise
                work.give_back()
                if not waits.wait(error):
                    return


def model_of(result: StreamResult[Unit]) -> str | None:
    """The model as NAME/VERSION; None of a unit that failed."""
    return str(result.translation.model) if result.translation is not None else None


def _is_transient(error: DragomanError) -> bool:
    """Whether another stream may succeed.

    CANCELLED can only be the server's doing; ABORTED means the stream was idle, as when the job was
    suspended.
    """
    is_away = isinstance(error, UnavailableError | OverloadedError | CallCancelledError)
    return is_away or error.status == "ABORTED"
