"""One reading of a document: the memory that it may take, by its size, and whether somebody wants it yet."""

from dragoman_files.errors import FileError
from dragoman_files.format import Input

MEMORY_PER_BYTE = 64
"""Bytes of memory that a document may take for each of its own."""
MEMORY_FLOOR = 128 << 20
"""Bytes of memory that any document may take, however small it is."""
ITEM_BYTES = 250
"""The most that a tag, a reference or a token takes, while it is read and as a part of a text."""
UNIT_BYTES = 800
"""The most that a line takes, beside its text, where all of a file are held."""
TEXT_BYTES = 2000
"""The most that a text takes with all that is needed to write its translation."""
_NUM_UNASKED = 512


class Reading:
    """What every reader of a format is given, and takes from for what it makes."""

    def __init__(self, source: Input, num_bytes: int) -> None:
        """`num_bytes` is the size of the file as it came."""
        self.source_language = source.source_language
        self.target_language = source.target_language
        self.check = source.check
        """Raises where nobody wants the document any more."""
        # Half is for the text itself, which is in memory several times.
        self._max_bytes = self._rest = MEMORY_FLOOR + MEMORY_PER_BYTE // 2 * num_bytes
        self._num_asked = 0

    def take(self, num_bytes: int) -> None:
        """Takes some memory. Raises FileError where none is left, and now and then what `check` raises."""
        self._rest -= num_bytes
        if self._rest < 0:
            raise FileError(
                f"it holds so many tags and texts for its size that reading it would take more than "
                f"{self._max_bytes >> 20} MiB of memory, the most that a file of its size may take: split it"
            )
        self._num_asked += 1
        if self._num_asked % _NUM_UNASKED == 0:
            self.check()

    def give_back(self, num_bytes: int) -> None:
        """Gives back what was taken for something that is not held any more."""
        self._rest += num_bytes
