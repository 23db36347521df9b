"""Files of models from elsewhere, whatever their format: mapped and read within their bounds, and JSON.

Must not know what is in them.
"""

import json
import mmap
import struct
from pathlib import Path
from typing import Any


class FormatError(ValueError):
    """A model that is none of its format, is not whole, or has what our models have no place for."""


def read_text(path: Path) -> str:
    """The text in a file. Raises FormatError."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise FormatError(f"{path.parent} has no {path.name}, which such a model has") from None
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is no text in UTF-8: {error}") from error


def read_json(path: Path) -> Any:
    """The value in a file. Raises FormatError."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from error


def read_object(path: Path, *, is_needed: bool = True) -> dict[str, Any]:
    """The object in a file, or an empty one where a model may lack the file. Raises FormatError."""
    if not is_needed and not path.exists():
        return {}
    value = read_json(path)
    if not isinstance(value, dict):
        raise FormatError(f"{path} is no JSON object")
    return value


def map_file(path: Path) -> mmap.mmap:
    """The bytes of a file, of which nothing is read before it is looked at. Raises FormatError."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise FormatError(f"{path} is empty") from error
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror or error}") from error


class Cursor:
    """A place in a file. Whatever is taken from there is there, or FormatError is raised."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._view = memoryview(map_file(path))
        self._place = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._view)

    @property
    def num_left(self) -> int:
        """Bytes from here to the end."""
        return self.size - self._place

    def take(self, num_bytes: int, of: str) -> memoryview:
        """The next bytes, uncopied; nothing is allocated because a header says so."""
        if num_bytes > self.num_left:
            raise FormatError(
                f"{self.path} is cut off or damaged: {of} should take {num_bytes} bytes from byte "
                f"{self._place} on, and {self.num_left} are left"
            )
        self._place += num_bytes
        return self._view[self._place - num_bytes : self._place]

    def numbers(self, layout: str, of: str) -> tuple[int, ...]:
        """The next whole numbers, in little-endian, as `struct` names them."""
        layout = f"<{layout}"
        return struct.unpack(layout, self.take(struct.calcsize(layout), of))

    def number(self, code: str, of: str) -> int:
        """The next whole number."""
        return self.numbers(code, of)[0]
