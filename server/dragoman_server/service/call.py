"""A call from its start to its end: let in, counted, one line in the log, over gRPC and HTTP alike.

The line has counts and times, never a text. The gate belongs to the event loop's thread.
"""

import asyncio
import logging
import threading
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dragoman_server.aligners.aligner import ServedAligner
from dragoman_server.engine import DeadlineExpiredError, Priority
from dragoman_server.errors import NotServingError, TooManyCallsError, UnwantedError
from dragoman_server.models.model import Occupancy, RequestedModel
from dragoman_server.service.allowance import Allowance, Allowances
from dragoman_server.service.searching import Stages
from dragoman_server.service.statuses import Code, cancellation_code, code_of, status_of
from dragoman_server.text.align.pairs import AlignedPair
from dragoman_server.text.translated import TranslatedText
from dragoman_server.wanted import Wanted

if TYPE_CHECKING:
    from dragoman_server.tracing import CallTrace, Tracing


class Gate:
    """Counts the calls that are in, and closes for good."""

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._open = False
        self.answers = Occupancy()
        """Calls that were admitted and whose last message is not out yet."""
        self.draining = asyncio.Event()
        """Set once no more work is taken."""

    def open(self) -> None:
        self._open = True

    async def drain(self, timeout_seconds: float) -> bool:
        """Lets no more calls in and waits until those inside are answered; whether all were in time."""
        self.draining.set()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.answers.wait_until_empty()
        except TimeoutError:
            return False
        return True

    def admit(self) -> None:
        """A call comes in, which must `answers.leave`. Raises NotServingError or TooManyCallsError."""
        if self.draining.is_set():
            raise NotServingError("draining")
        if not self._open:
            raise NotServingError("loading")
        if self.answers.num_inside >= self._max_calls:
            raise TooManyCallsError(self._max_calls)
        self.answers.enter()


logger = logging.getLogger(__name__)

TRACE_RESPONSE = "traceresponse"
"""Name of the trace in an answer: metadata over gRPC, a header over HTTP (W3C)."""


@dataclass(frozen=True, kw_only=True)
class IncomingCall:
    """A call that has come, as gRPC or HTTP knows it."""

    method: str
    """Name of what is asked for, for the log."""
    peer: str
    identify: Callable[[], str | None]
    """Whose call it is; None where nobody is asked. Raises UnknownCallerError."""
    time_remaining: Callable[[], float | None]
    on_answered: Callable[[Callable[[], object]], object]
    """Has a function called once the answer is out, or will never be."""
    carrier: Callable[[], Mapping[str, str]]
    """The metadata or headers, in which a trace may be named."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """More for the log."""


def host_of(peer: str) -> str:
    """The address of a caller, without its port, as gRPC names it (ipv4:192.0.2.1:50000) or as HTTP does."""
    host = urllib.parse.unquote(peer.rpartition(":")[0])
    return host.removeprefix("ipv4:").removeprefix("ipv6:").strip("[]")


class Call:
    """A call, as the log and the metrics see it."""

    def __init__(
        self, time_remaining: Callable[[], float | None], *, gate: Gate, allowances: Allowances
    ) -> None:
        self.time_remaining = time_remaining
        remaining = time_remaining()
        self.wanted = Wanted(None if remaining is None else time.monotonic() + remaining)
        """The mark that its threads ask for: it is dropped when the call's work ends, whatever ends it."""
        self._gate = gate
        self._allowances = allowances
        self._counts = {"texts": 0, "sentences": 0, "source_tokens": 0, "target_tokens": 0, "failed_items": 0}
        self._counts |= {"pairs": 0, "characters": 0}
        # Guards the counts: items of a stream may be counted in several threads.
        self._lock = threading.Lock()
        self.model: str | None = None
        """ "name/version", or the key of an aligner, once it is known."""
        self.caller: str | None = None
        """The caller's name, where the server asks."""
        self.trace: CallTrace | None = None

    @property
    def fields(self) -> dict[str, object]:
        return {"caller": self.caller, "model": self.model, **self._counts}

    @property
    def allowance(self) -> Allowance:
        return self._allowances.of(self.caller)

    def admit(self, admission: ExitStack) -> None:
        """Lets it in, until `admission` is closed.

        Raises NotServingError, TooManyCallsError or CallerLimitError, and it counts nowhere then.
        """
        with ExitStack() as admitted:
            self._gate.admit()
            admitted.callback(self._gate.answers.leave)
            self.allowance.enter()
            admitted.callback(self.allowance.leave)
            admission.push(admitted.pop_all())

    @asynccontextmanager
    async def characters(
        self, number: int, *, field: str, waits: bool = False
    ) -> AsyncIterator[Callable[[int], None]]:
        """Lets so many of the caller's characters through; with `waits` its work begins when the caller may.

        What the server refuses or fails at does not count, but for what is done by then, as the function that
        it gives is told; what is cancelled, or too late, does. Raises CallerLimitError, or for a `field` that
        has more than the caller ever may InvalidRequestError.
        """
        allowance = self.allowance
        if waits:
            taken = await allowance.take_in_turn(number, field, self._gate.draining)
        else:
            taken = allowance.take(number, field)
        num_done, num_used = 0, number

        def note_done(some: int) -> None:
            nonlocal num_done
            num_done += some

        try:
            yield note_done
        except Exception as error:
            if not isinstance(error, DeadlineExpiredError | UnwantedError):
                num_used = num_done
            raise
        finally:
            if num_used:
                allowance.use(replace(taken, num_characters=num_used))
                with self._lock:
                    self._counts["characters"] += num_used
            if num_used < number:
                allowance.give_back(replace(taken, num_characters=number - num_used))

    @contextmanager
    def request(self, model: RequestedModel | ServedAligner, priority: Priority) -> Iterator[Stages | None]:
        """Counts and times a request to a model or aligner: the whole of a unary call, or a stream's item.

        Gives what is to be told of its stages; None where nobody wants to know.
        """
        started = time.perf_counter()
        stages = None if self.trace is None else Stages()
        code = Code.OK
        try:
            yield stages
        except asyncio.CancelledError:
            code = cancellation_code(self.time_remaining())
            raise
        except Exception as error:
            code = code_of(error)
            raise
        finally:
            seconds = time.perf_counter() - started
            model.metrics.on_request(outcome=code.name, priority=priority, seconds=seconds)
            if self.trace is not None and stages is not None:
                self.trace.on_request(model.key, priority.value, code, stages)

    def count(self, model: RequestedModel, priority: Priority, translated: Sequence[TranslatedText]) -> None:
        """Texts were translated. May be called from any thread."""
        for text in translated:
            model.metrics.on_text(text, priority)
        with self._lock:
            for text in translated:
                self._counts["texts"] += 1
                self._counts["sentences"] += text.num_units
                self._counts["source_tokens"] += text.num_source_tokens
                self._counts["target_tokens"] += text.num_target_tokens

    def count_pairs(self, model: RequestedModel | ServedAligner, aligned: Sequence[AlignedPair]) -> None:
        """Pairs of texts were linked. May be called from any thread."""
        model.metrics.on_pairs(len(aligned))
        with self._lock:
            self._counts["pairs"] += len(aligned)
            for pair in aligned:
                self._counts["source_tokens"] += pair.num_source_tokens
                self._counts["target_tokens"] += pair.num_target_tokens

    def count_failed_item(self) -> None:
        """An item of a stream was answered with an error."""
        self._counts["failed_items"] += 1


@asynccontextmanager
async def open_call(
    incoming: IncomingCall,
    *,
    gate: Gate,
    allowances: Allowances,
    tracing: "Tracing | None",
    max_idle_seconds: float,
) -> AsyncIterator[Call]:
    """Opens a call for its work. What that raises is in the log then, and becomes a status outside.

    It has a place among the calls until its answer is out, for at most `max_idle_seconds` after its work.
    """
    call = Call(incoming.time_remaining, gate=gate, allowances=allowances)
    if tracing is not None:
        call.trace = tracing.begin(incoming.method, incoming.carrier())
    started = time.perf_counter()
    code = Code.OK
    refusal: dict[str, object] = {}
    admission = ExitStack()
    try:
        call.caller = incoming.identify()
        call.wanted.caller = call.caller or host_of(incoming.peer)
        call.admit(admission)
        # What a handler returns is not out with that: a caller may take its time to read it.
        incoming.on_answered(admission.close)
        try:
            yield call
        finally:
            call.wanted.drop()
            # Neither gRPC nor HTTP ends a call whose caller reads nothing and stays connected.
            late = asyncio.get_running_loop().call_later(max_idle_seconds, admission.close)
            admission.callback(late.cancel)
    except asyncio.CancelledError:
        code = cancellation_code(incoming.time_remaining())
        raise
    except Exception as error:
        code = code_of(error)
        refusal = refusal_fields(incoming.peer, status_of(error).message)
        log_if_internal(error)
        raise
    finally:
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        fields: dict[str, object] = {"method": incoming.method, "outcome": code.name}
        fields |= {"milliseconds": milliseconds, **incoming.fields, **call.fields, **refusal}
        if call.trace is not None:
            call.trace.end(code, fields)
            fields |= call.trace.ids
        logger.info("call", extra=fields)


def refusal_fields(peer: str, reason: str) -> dict[str, object]:
    """Fields of the log for a call that is answered with an error: where it came from, and its message."""
    return {"peer": peer, "reason": reason}


def log_if_internal(error: Exception) -> None:
    """Writes down, with its trace, an error whose cause the caller is not told."""
    if code_of(error) is Code.INTERNAL:
        logger.error("internal error", exc_info=error)
