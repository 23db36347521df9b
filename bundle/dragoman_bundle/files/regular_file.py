"""Files read within bounds, and regular ones alone: a pipe or a device may never answer, or never end.

A file system that hangs is beyond it: a reader that must not wait for one reads in a thread that can be left.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """Opens a file to read its bytes. Raises OSError, also for a folder, a pipe, a socket or a device."""
    # Without O_NONBLOCK a pipe that nobody writes to would hold up the very opening.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def read_regular(path: Path, *, max_bytes: int) -> bytes:
    """All of a file. Raises OSError as `open_regular`, and before it reads anything where it is larger."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1) if size <= max_bytes else b""
        if max(size, len(content)) > max_bytes:
            reported = max(size, len(content))
            raise OSError(
                errno.EFBIG, f"it has {reported} bytes, and at most {max_bytes} are read", str(path)
            )
    return content
