"""The texts that a stream has sent and whose results are open, for both clients. Knows no threads and no
event loop."""

from collections.abc import Iterator
from typing import Generic

from dragoman import errors, messages
from dragoman.texts import check_stream_text
from dragoman.translation import Key, StreamResult
from dragoman.v1 import translation_pb2 as pb


class Ledger(Generic[Key]):
    """Gives every text a number on the wire, so that callers' ids may be of any kind and may repeat."""

    def __init__(self, *, in_order: bool) -> None:
        """`in_order` holds results back until all earlier texts have theirs."""
        self._in_order = in_order
        self._sent = 0
        self._next = 0
        self._open: dict[str, Key] = {}
        self._refused: dict[str, errors.InvalidRequestError] = {}
        self._ended = False
        self._error: Exception | None = None
        self._held: dict[int, StreamResult[Key]] = {}

    def send(self, id_: Key, text: str) -> pb.TranslateStreamItem:
        """Enters a text and returns its item. Raises TypeError for what is no string.

        A text that can't travel leaves an empty one in its place, and its result is the error.
        """
        number = str(self._sent)
        try:
            text = check_stream_text(text, f"text {number} of the stream")
        except errors.InvalidRequestError as error:
            self._refused[number], text = error, ""
        self._open[number] = id_
        self._sent += 1
        return messages.stream_item(number, text)

    def receive(self, message: pb.TranslateStreamResponse) -> Iterator[StreamResult[Key]]:
        """Strikes out what was answered and yields the results that may go to the caller now."""
        for answer in message.results.results if message.HasField("results") else (message,):
            yield from self._receive_one(answer)

    def _receive_one(self, message: pb.TranslateStreamResponse) -> list[StreamResult[Key]]:
        if message.id not in self._open:
            raise errors.ServerError(f"the server answered a text that was not asked: id {message.id!r}")
        id_ = self._open.pop(message.id)
        refused = self._refused.pop(message.id, None)
        result = StreamResult(id=id_, translation=None, error=refused) if refused else _result(id_, message)
        if not self._in_order:
            return [result]
        self._held[int(message.id)] = result
        ready = []
        while self._next in self._held:
            ready.append(self._held.pop(self._next))
            self._next += 1
        return ready

    def end(self, error: Exception | None = None) -> None:
        """Notes that no more texts follow: there are none left, or reading them raised `error`."""
        self._ended = True
        self._error = error

    def close(self) -> None:
        """Checks, when the server has ended the stream, that every text was sent and answered.

        Raises UnavailableError where not, and what reading the texts raised.
        """
        if self._open or not self._ended:
            raise errors.UnavailableError(
                f"the server ended the stream, with {len(self._open)} texts unanswered"
            )
        if self._error is not None:
            raise self._error


def _result(id_: Key, message: pb.TranslateStreamResponse) -> StreamResult[Key]:
    if message.HasField("error"):
        return StreamResult(id=id_, translation=None, error=errors.from_status(message.error))
    model = messages.model_reference(message.model)
    return StreamResult(id=id_, translation=messages.translation(message.translation, model), error=None)
