"""A file system that hangs, for this process: a file beside which there is a pipe FILE.wait is opened late.

Python imports this at its start where the folder is on its path. To open the file takes until somebody has
opened that pipe, and closed it.
"""

import os
from typing import Any

SUFFIX = ".wait"
_open = os.open


def open_late(path: Any, *arguments: Any, **options: Any) -> int:
    """`os.open` on such a file system."""
    pipe = f"{os.fspath(path)}{SUFFIX}" if isinstance(path, str | os.PathLike) else ""
    if pipe and os.path.exists(pipe):
        waiting = _open(pipe, os.O_RDONLY)
        while os.read(waiting, 1):
            pass
        os.close(waiting)
    return _open(path, *arguments, **options)


if __name__ == "sitecustomize":
    os.open = open_late  # type: ignore[assignment]
