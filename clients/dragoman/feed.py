"""The messages of a stream for gRPC's blocking API, which pulls them in a thread of its own."""

import threading
from collections.abc import Iterable, Iterator
from typing import Generic

from dragoman.arguments import check_count
from dragoman.ledger import Ledger
from dragoman.messages import MAX_MESSAGE_BYTES, MAX_MESSAGE_TEXTS, stream_items
from dragoman.texts import check_pair
from dragoman.translation import Key
from dragoman.v1 import translation_pb2 as pb


class Feed(Iterator[pb.TranslateStreamRequest], Generic[Key]):
    """Yields the config, then the texts, at most `window` ahead of what the caller has taken.

    Raises nothing but StopIteration: gRPC would log anything else and end the call without telling why.
    """

    def __init__(
        self,
        config: pb.TranslateStreamRequest,
        texts: Iterable[tuple[Key, str]],
        ledger: Ledger[Key],
        *,
        window: int,
        texts_per_message: int,
    ) -> None:
        """A message has up to `texts_per_message` texts, within what one may hold, or one longer text.

        Raises TypeError and InvalidRequestError for a window, or a message, that holds no text.
        """
        for name, value in (("window", window), ("texts_per_message", texts_per_message)):
            check_count(value, name)
        self._config: pb.TranslateStreamRequest | None = config
        self._texts = iter(texts)
        self._ledger = ledger
        self._permits = threading.Semaphore(window)
        # A message for more texts than the window holds would never fill up.
        self._texts_per_message = min(texts_per_message, window, MAX_MESSAGE_TEXTS)
        self._next: pb.TranslateStreamItem | None = None
        self._ended = False
        self._closed = False

    def __next__(self) -> pb.TranslateStreamRequest:
        if self._config is not None:
            config, self._config = self._config, None
            return config
        items: list[pb.TranslateStreamItem] = []
        num_bytes = 0
        while len(items) < self._texts_per_message:
            self._next = self._next or self._read()
            if self._closed or self._next is None:
                break
            num_bytes += len(self._next.text.encode())
            if items and num_bytes > MAX_MESSAGE_BYTES:
                break
            items.append(self._next)
            self._next = None
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
            return self._ledger.send(*check_pair(next(self._texts)))
        except StopIteration:
            self._ledger.end()
        except Exception as error:
            self._ledger.end(error)
        self._ended = True
        return None

    def release(self) -> None:
        """Makes room for one more text."""
        self._permits.release()

    def close(self) -> None:
        """Ends the feed, and wakes the thread that waits for room."""
        self._closed = True
        self._permits.release()
