"""The messages of a stream for gRPC's blocking API, which pulls them in a thread of its own."""

import threading
from collections.abc import Iterable, Iterator
from typing import Generic

from dragoman.errors import InvalidRequestError
from dragoman.ledger import Ledger
from dragoman.texts import check_pair
from dragoman.translation import Key
from dragoman.v1 import translation_pb2 as pb


class Feed(Iterator[pb.TranslateStreamRequest], Generic[Key]):
    """Yields the config, then a message a text, at most `window` ahead of what the caller has taken.

    Raises nothing but StopIteration: gRPC would log anything else and end the call without telling why.
    """

    def __init__(
        self,
        config: pb.TranslateStreamRequest,
        texts: Iterable[tuple[Key, str]],
        ledger: Ledger[Key],
        *,
        window: int,
    ) -> None:
        """Raises InvalidRequestError for a window that holds no text."""
        if window < 1:
            raise InvalidRequestError(f"window is {window}; it must be at least 1")
        self._config: pb.TranslateStreamRequest | None = config
        self._texts = iter(texts)
        self._ledger = ledger
        self._permits = threading.Semaphore(window)
        self._closed = False

    def __next__(self) -> pb.TranslateStreamRequest:
        if self._config is not None:
            config, self._config = self._config, None
            return config
        self._permits.acquire()
        if self._closed:
            raise StopIteration
        try:
            return self._ledger.send(*check_pair(next(self._texts)))
        except StopIteration:
            self._ledger.end()
            raise
        except Exception as error:
            self._ledger.end(error)
            raise StopIteration from None

    def release(self) -> None:
        """Makes room for one more text."""
        self._permits.release()

    def close(self) -> None:
        """Ends the feed, and wakes the thread that waits for room."""
        self._closed = True
        self._permits.release()
