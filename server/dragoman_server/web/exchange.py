"""One request over HTTP: its body within limits, its fields, who makes it, its deadline, its id."""

import asyncio
import re
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from dragoman_server.errors import BodyTooLargeError, SlowRequestError, refusal
from dragoman_server.service.call import Call, IncomingCall
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.connections import CONNECTION
from dragoman_server.web.fields import Fields, UploadedFile, join_lists, not_in_utf8, read_form, read_json

T = TypeVar("T")

ID_HEADER = "X-Request-ID"
"""Names a request in the log: the caller's own, or one that the answer tells."""
TIMEOUT_HEADER = "X-Timeout-Seconds"
"""How long a caller waits at most, where that is less than the server lets it."""

_ID = re.compile(r"[\w.:@/+=-]{1,128}", re.ASCII)
_CHUNK_BYTES = 1 << 16
# A larger body is made sense of beside the event loop.
_MAX_BYTES_ON_LOOP = 1 << 14


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class Exchange:
    """A request, as far as it is read."""

    def __init__(self, scope: Scope, receive: Receive, *, core: ServiceCore, route: str, api: str) -> None:
        self.request = Request(scope)
        self.core = core
        given_id = self.request.headers.get(ID_HEADER, "")
        self.id = given_id if _ID.fullmatch(given_id) else uuid.uuid4().hex
        """The request's id, for the log and the answer."""
        self.body = b""
        """All of it, once it is read."""
        self.is_logged = False
        """Whether a line of the log tells of it."""
        self.trace_response: str | None = None
        """The `traceparent` of the answer, where the request has a trace."""
        self._receive = receive
        self._route = route
        self._api = api
        self._is_read = asyncio.Event()
        self._answered = ExitStack()
        self._deadline: float | None = None

    @property
    def peer(self) -> str:
        client = self.request.client
        return "unknown" if client is None else f"{client.host}:{client.port}"

    @property
    def header_token(self) -> str | None:
        """The token of `Bearer TOKEN` or `DeepL-Auth-Key TOKEN`; "" for any other header."""
        authorization = self.request.headers.get("authorization")
        if authorization is None:
            return None
        scheme, _, token = authorization.partition(" ")
        return token.strip() if scheme.lower() in ("bearer", "deepl-auth-key") else ""

    def time_remaining(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()

    def start_clock(self) -> None:
        """Starts the deadline of the answer, the earlier of the server's and the caller's. Raises
        InvalidRequestError."""
        seconds, header = self.core.limits.max_http_seconds, self.request.headers.get(TIMEOUT_HEADER)
        if header is not None:
            if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", header):
                raise refusal(TIMEOUT_HEADER, f"must be a number of seconds, and is {header[:80]!r}")
            seconds = min(seconds, float(header))
        self._deadline = time.monotonic() + seconds

    async def read(self) -> None:
        """Reads the body.

        Raises BodyTooLargeError, SlowRequestError, ClientGoneError, InvalidRequestError.
        """
        limits = self.core.limits
        length = self.request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limits.max_http_body_bytes:
            raise BodyTooLargeError(limits.max_http_body_bytes)
        if (encoding := self.request.headers.get("content-encoding", "identity")) != "identity":
            raise refusal("Content-Encoding", f"is {encoding[:80]!r}; send the body as it is")
        parts: list[bytes] = []
        num_bytes = 0
        try:
            async with asyncio.timeout(limits.max_http_seconds):
                while True:
                    message: Message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    parts.append(message.get("body", b""))
                    num_bytes += len(parts[-1])
                    if num_bytes > limits.max_http_body_bytes:
                        raise BodyTooLargeError(limits.max_http_body_bytes)
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise SlowRequestError(limits.max_http_seconds) from None
        self.body = b"".join(parts)
        self._is_read.set()

    async def wait_until_gone(self) -> None:
        """Returns when nobody waits for the answer any more, once the body is read."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def make_of_json(self, make: Callable[[Any], T]) -> T:
        """The result of `make` for the body's JSON, in a thread where there is much of it.

        Raises InvalidRequestError, and what `make` raises.
        """

        def work() -> T:
            return make(read_json(self.body))

        return work() if len(self.body) <= _MAX_BYTES_ON_LOOP else await asyncio.to_thread(work)

    async def fields(self) -> Fields:
        """The fields of the query, and of the body as JSON or as a form. Raises InvalidRequestError."""
        query = read_form(self.request.scope["query_string"])
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not self.body:
            return Fields(values=query)
        if kind == "multipart/form-data":
            return await self._multipart(query)
        if kind == "application/x-www-form-urlencoded" or (not kind and not self.body.startswith(b"{")):
            # Many escapes take a while: others' calls get in between.
            is_short = len(self.body) <= _CHUNK_BYTES
            values = read_form(self.body) if is_short else await asyncio.to_thread(read_form, self.body)
            return Fields(values=query | values)
        value = await self.make_of_json(lambda value: value)
        if not isinstance(value, dict):
            raise refusal("", "the body must be an object of JSON")
        return Fields(values=query | value)

    async def _multipart(self, query: dict[str, object]) -> Fields:
        limit = self.core.limits.max_http_body_bytes
        # The parser would take what is not in UTF-8 for Latin-1; told that it is, it keeps each byte.
        headers = Headers({"content-type": self.request.headers["content-type"] + "; charset=latin-1"})
        try:
            form = await MultiPartParser(
                headers, self._stream(), max_files=1, max_fields=100, max_part_size=limit
            ).parse()
        except (MultiPartException, KeyError, ValueError) as error:
            raise refusal("", f"the body is no multipart form: {error}") from None
        try:
            pairs: list[tuple[str, str]] = []
            files: dict[str, UploadedFile] = {}
            for name, value in form.multi_items():
                if isinstance(value, str):
                    pairs.append((_utf8(name), _utf8(value)))
                else:
                    content = await value.read()
                    files[_utf8(name)] = UploadedFile(name=_utf8(value.filename or ""), content=content)
        except UnicodeDecodeError as error:
            raise not_in_utf8(error) from None
        finally:
            await form.close()
        return Fields(values=query | join_lists(pairs), files=files)

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        for start in range(0, len(self.body), _CHUNK_BYTES):
            yield self.body[start : start + _CHUNK_BYTES]
            # A form is read step by step in Python: others' calls get in between.
            await asyncio.sleep(0)
        yield b""

    @asynccontextmanager
    async def open_call(self, method: str, *, token: str | None = None) -> AsyncIterator[Call]:
        """Opens the call for its work. `token`: one that came in the body; that of a header counts first."""
        given = token if self.header_token is None else self.header_token
        certified = self.request.scope["state"][CONNECTION].certified_names
        incoming = IncomingCall(
            method=method,
            peer=self.peer,
            identify=lambda: self.core.callers.name(given, certified),
            time_remaining=self.time_remaining,
            on_answered=self.on_answered,
            carrier=lambda: self.request.headers,
            fields={"api": self._api, "route": self._route, "request_id": self.id},
        )
        self.is_logged = True
        async with self.core.open_call(incoming) as call:
            if call.trace is not None:
                self.trace_response = call.trace.answer
            yield call

    def on_answered(self, function: Callable[[], object]) -> None:
        """Has it called once the answer is out, or will never be."""
        self._answered.callback(function)

    def close(self) -> None:
        """The answer is out, or will never be."""
        self._answered.close()


def _utf8(latin: str) -> str:
    """The text of bytes that were read as Latin-1. Raises UnicodeDecodeError."""
    return latin.encode("latin-1").decode()
