"""One stream of texts, as gRPC's blocking API takes it: its messages, and the results of its texts."""

import threading
from collections.abc import Iterable, Iterator
from typing import Generic

from dragoman import errors, messages
from dragoman.messages import MAX_MESSAGE_BYTES, MAX_MESSAGE_TEXTS, stream_items
from dragoman.settings import MAX_STREAM_TEXT_BYTES, Settings, check_count, check_pair, check_text, invalid
from dragoman.translation import Key, StreamResult
from dragoman.v1 import translation_pb2 as pb


class Stream(Iterator[pb.TranslateStreamRequest], Generic[Key]):
    """Yields the config, then the texts, at most `window` ahead of what the caller has taken; gRPC pulls them
    in a thread of its own.

    Raises nothing but StopIteration: gRPC would log anything else and end the call without telling why.
    Every text has a number on the wire, so that callers' ids may be of any kind and may repeat.
    """

    def __init__(
        self,
        texts: Iterable[tuple[Key, str]],
        settings: Settings,
        *,
        in_order: bool,
        window: int,
        texts_per_message: int,
    ) -> None:
        """A message has up to `texts_per_message` texts, within what one may hold, or one longer text.
        `in_order` holds results back until all earlier texts have theirs.

        Raises TypeError and InvalidRequestError for a window, or a message, that holds no text.
        """
        for name, value in (("window", window), ("texts_per_message", texts_per_message)):
            check_count(value, name)
        self._config: pb.TranslateStreamRequest | None = messages.stream_config(settings)
        self._texts = iter(texts)
        self._permits = threading.Semaphore(window)
        # A message for more texts than the window holds would never fill up.
        self._texts_per_message = min(texts_per_message, window, MAX_MESSAGE_TEXTS)
        self._next_item: pb.TranslateStreamItem | None = None
        self._closed = False
        # Of the texts that were sent: how many, and by number the ids of those without a result yet, and the
        # errors of those that can't travel.
        self._num_sent = 0
        self._open: dict[str, Key] = {}
        self._refused: dict[str, errors.InvalidRequestError] = {}
        # No more texts follow: there are none left, or reading them raised the error.
        self._ended = False
        self._read_error: Exception | None = None
        # Of the results that came: those that wait for earlier ones, and the number of the first that is due.
        self._in_order = in_order
        self._waiting: dict[int, StreamResult[Key]] = {}
        self._next_result = 0

    def __next__(self) -> pb.TranslateStreamRequest:
        if self._config is not None:
            config, self._config = self._config, None
            return config
        items: list[pb.TranslateStreamItem] = []
        num_bytes = 0
        while len(items) < self._texts_per_message:
            self._next_item = self._next_item or self._read()
            if self._closed or self._next_item is None:
                break
            num_bytes += len(self._next_item.text.encode())
            if items and num_bytes > MAX_MESSAGE_BYTES:
                break
            items.append(self._next_item)
            self._next_item = None
        if self._closed or not items:
            raise StopIteration
        return stream_items(items)

    def _read(self) -> pb.TranslateStreamItem | None:
        """The next text, once there is room for it; None where there is none any more."""
        if self._ended:
            return None
        self._permits.acquire()
        if self._closed:
            return None
        try:
            return self._item(*check_pair(next(self._texts)))
        except StopIteration:
            pass
        except Exception as error:
            self._read_error = error
        self._ended = True
        return None

    def _item(self, id_: Key, text: str) -> pb.TranslateStreamItem:
        """The item of a text. One that can't travel leaves an empty text in its place, and its result is the
        error. Raises TypeError for what is no string."""
        number = str(self._num_sent)
        try:
            field = f"text {number} of the stream"
            if (size := len(check_text(text, field).encode())) > MAX_STREAM_TEXT_BYTES:
                limit = f"at most {MAX_STREAM_TEXT_BYTES} can travel in one message"
                raise invalid(field, f"has {size} bytes; {limit}")
        except errors.InvalidRequestError as error:
            self._refused[number], text = error, ""
        self._open[number] = id_
        self._num_sent += 1
        return messages.stream_item(number, text)

    def receive(self, response: pb.TranslateStreamResponse) -> Iterator[StreamResult[Key]]:
        """The results that may go to the caller now. Each that is taken makes room for one more text."""
        for answer in response.results.results if response.HasField("results") else (response,):
            if answer.id not in self._open:
                raise errors.ServerError(f"the server answered a text that was not asked: id {answer.id!r}")
            result = _result(self._open.pop(answer.id), answer, self._refused.pop(answer.id, None))
            self._waiting[int(answer.id) if self._in_order else self._next_result] = result
            while (due := self._waiting.pop(self._next_result, None)) is not None:
                self._next_result += 1
                self._permits.release()
                yield due

    def end(self) -> None:
        """Checks, when the server has ended the stream, that every text was sent and answered.

        Raises UnavailableError where not, and what reading the texts raised.
        """
        if self._open or not self._ended:
            rest = f"with {len(self._open)} texts unanswered"
            raise errors.UnavailableError(f"the server ended the stream, {rest}")
        if self._read_error is not None:
            raise self._read_error

    def close(self) -> None:
        """Ends the messages, and wakes the thread that waits for room."""
        self._closed = True
        self._permits.release()


def _result(
    id_: Key, message: pb.TranslateStreamResponse, refused: errors.InvalidRequestError | None
) -> StreamResult[Key]:
    if refused is not None:
        return StreamResult(id=id_, translation=None, error=refused)
    if message.HasField("error"):
        return StreamResult(id=id_, translation=None, error=errors.from_status(message.error))
    model = messages.model_reference(message.model)
    path = tuple(map(messages.model_reference, message.path))
    translation = messages.translation(message.translation, model, path)
    return StreamResult(id=id_, translation=translation, error=None)
