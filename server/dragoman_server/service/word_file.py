"""Files that a person keeps about callers: lines of words, with comments."""

from collections.abc import Iterator
from pathlib import Path

from dragoman_bundle.checked_files import read_regular

from dragoman_server.errors import ServerFileError

MAX_FILE_BYTES = 1 << 24
"""Most bytes of a file: a hundred thousand tokens have a third."""


def read_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of each line that says something, and its words.

    Empty lines and those that begin with # say nothing. Raises ServerFileError for a file that can't be read.
    """
    try:
        lines = read_regular(path, max_bytes=MAX_FILE_BYTES).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise ServerFileError(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ServerFileError(f"{path} can't be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            yield number, words
