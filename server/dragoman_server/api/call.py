"""A call of the API from its start to its end: let in, its error turned into a status, one line in the log.

The line has counts and times, never a text.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager

import grpc
from grpc_status import rpc_status

from dragoman_server.api.callers import Callers
from dragoman_server.api.gate import Gate
from dragoman_server.api.interceptors.interception import Context
from dragoman_server.api.statuses import cancellation_code, code_of, status_of
from dragoman_server.engine import Priority
from dragoman_server.models.model import ServedModel
from dragoman_server.text.pair import AlignedPair
from dragoman_server.text.translated import TranslatedText

logger = logging.getLogger(__name__)


class Call:
    """What the log and the metrics are told of a call."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts = {"texts": 0, "sentences": 0, "source_tokens": 0, "target_tokens": 0, "failed_items": 0}
        self._counts["pairs"] = 0
        # Guards the counts: items of a stream may be counted in several threads.
        self._lock = threading.Lock()
        self.model: str | None = None
        """ "name/version", once it is known."""
        self.caller: str | None = None
        """Who calls, where the server asks."""

    @property
    def fields(self) -> dict[str, object]:
        """For the log."""
        return {"caller": self.caller, "model": self.model, **self._counts}

    @contextmanager
    def request(self, model: ServedModel, priority: Priority) -> Iterator[None]:
        """Around one request to a model: the whole of a Translate call, or an item of a stream."""
        started = time.perf_counter()
        code = grpc.StatusCode.OK
        try:
            yield
        except asyncio.CancelledError:
            code = cancellation_code(self._context)
            raise
        except Exception as error:
            code = code_of(error)
            raise
        finally:
            seconds = time.perf_counter() - started
            model.metrics.on_request(outcome=code.name, priority=priority, seconds=seconds)

    def count(self, model: ServedModel, priority: Priority, translated: Sequence[TranslatedText]) -> None:
        """Texts were translated. May be called from any thread."""
        for text in translated:
            model.metrics.on_text(text, priority)
        with self._lock:
            for text in translated:
                self._counts["texts"] += 1
                self._counts["sentences"] += text.num_units
                self._counts["source_tokens"] += text.num_source_tokens
                self._counts["target_tokens"] += text.num_target_tokens

    def count_pairs(self, model: ServedModel, aligned: Sequence[AlignedPair]) -> None:
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
    method: str, context: Context, *, gate: Gate, callers: Callers, max_idle_seconds: float
) -> AsyncIterator[Call]:
    """Around a call's work. An exception becomes the call's status; see `statuses`.

    It has a place among the calls until its answer is out, for at most `max_idle_seconds` after its work.
    """
    call = Call(context)
    started = time.perf_counter()
    code = grpc.StatusCode.OK
    refusal: dict[str, object] = {}
    place = ExitStack()
    try:
        call.caller = callers.identify(context.invocation_metadata())
        gate.admit()
        place.callback(gate.answers.leave)
        # What a handler returns is not out with that: a caller may take its time to read it.
        # The callback is declared as taking a class that does not exist.
        context.add_done_callback(lambda _: place.close())  # type: ignore[arg-type]
        try:
            yield call
        finally:
            # grpc.aio can't end a call whose caller reads nothing and stays connected.
            late = asyncio.get_running_loop().call_later(max_idle_seconds, place.close)
            place.callback(late.cancel)
    except asyncio.CancelledError:
        code = cancellation_code(context)
        raise
    except Exception as error:
        code = code_of(error)
        status = status_of(error)
        refusal = refusal_fields(context, status.message)
        log_if_internal(error)
        await context.abort_with_status(rpc_status.to_status(status))
    finally:
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        fields = {"method": method, "outcome": code.name, "milliseconds": milliseconds}
        fields |= call.fields | refusal
        logger.info("call", extra=fields)


def refusal_fields(context: Context, reason: str) -> dict[str, object]:
    """For the log of a call that is answered with an error: where it came from, and what it was told."""
    return {"peer": context.peer(), "reason": reason}


def log_if_internal(error: Exception) -> None:
    """Writes down, with its trace, an error whose cause the caller is not told."""
    if code_of(error) is grpc.StatusCode.INTERNAL:
        logger.error("internal error", exc_info=error)
