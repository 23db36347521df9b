"""Messages to a process that may not read them: a sender never waits for it.

Owns the writing end of a pipe. The other end is a `multiprocessing.connection.Connection`.
"""

import os
import select
import struct
import threading
from multiprocessing.reduction import ForkingPickler

_CHUNK_BYTES = 1 << 16
_LOOK_MILLISECONDS = 100
"""How often a thread that waits for the pipe looks whether it was closed meanwhile."""


class Outgoing:
    """Writes what the pipe takes at once, and the rest in a thread that ends when nothing is left.

    Its methods may be called from any thread.
    """

    def __init__(self, descriptor: int) -> None:
        """The descriptor is its own from now on, and is closed with it."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._backlog = bytearray()
        self._is_flushing = False
        self._is_closed = False
        # Guards the three above; nothing that is done under it waits.
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        """Sends a message after those before it. Nothing happens where nobody can read it any more."""
        data = ForkingPickler.dumps(message)
        with self._lock:
            if self._is_closed:
                return
            self._backlog += struct.pack("!i", len(data))
            self._backlog += data
            if self._is_flushing:
                return
            self._write()
            if self._backlog:
                self._is_flushing = True
                threading.Thread(target=self._flush, name="dragoman-engine-writer", daemon=True).start()

    def close(self) -> None:
        """Ends the pipe; what was not taken is lost."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._backlog.clear()
            if not self._is_flushing:
                os.close(self._descriptor)

    def _write(self) -> None:
        try:
            while self._backlog:
                num_written = os.write(self._descriptor, bytes(self._backlog[:_CHUNK_BYTES]))
                del self._backlog[:num_written]
        except BlockingIOError:
            return
        except OSError:
            # The reader has ended: that is told by the other pipe.
            self._backlog.clear()

    def _flush(self) -> None:
        pipe = select.poll()
        pipe.register(self._descriptor, select.POLLOUT)
        while True:
            pipe.poll(_LOOK_MILLISECONDS)
            with self._lock:
                self._write()
                if not self._backlog:
                    self._is_flushing = False
                    if self._is_closed:
                        os.close(self._descriptor)
                    return
