"""Which target tokens a sentence may be translated with: likely ones for its source, and frequent ones.

Owns `shortlist.npz` and the choice of a sentence's candidates. Must not know how the table was learnt.

Shapes: S sentences, T source positions, V source tokens, N entries, M most entries of a source token.
"""

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman_bundle.errors import ShortlistError

Ids = NDArray[np.int64]

_ARRAYS = ("first", "targets", "always")
# RuntimeError: a file with a password. NotImplementedError: a way of packing that Python lacks.
_UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error),
    *(TypeError, RuntimeError, NotImplementedError),
)

MAX_TABLE_ENTRIES = 1 << 27
"""Most places of the table that is made of a shortlist: source tokens times the most entries of one."""
_MAX_HEADER_BYTES = 4096
PADDING = -1
"""What a sentence with fewer candidates than its neighbours in a batch is filled up with."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shortlist:
    """A lexical shortlist (Jean et al. 2015, section 3.3). Raises ShortlistError for parts that misfit."""

    first_V: NDArray[np.unsignedinteger]
    """[V + 1]: where each source token's entries begin in `target_N`, and the end."""
    target_N: NDArray[np.unsignedinteger]
    """Target tokens, by source token."""
    always: NDArray[np.unsignedinteger]
    """Target tokens that every sentence may use, the end of the sentence among them."""
    target_vocabulary: int

    def __post_init__(self) -> None:
        arrays = (self.first_V, self.target_N, self.always)
        if any(array.ndim != 1 or array.dtype.kind != "u" for array in arrays):
            raise ShortlistError("its arrays are not all lists of unsigned integers")
        first_V = self.first_V.astype(np.int64)
        is_ascending = len(first_V) > 0 and first_V[0] == 0 and (np.diff(first_V) >= 0).all()
        if not is_ascending or first_V[-1] != len(self.target_N):
            entries = f"its {len(self.target_N)} entries"
            raise ShortlistError(f"{entries} are not cut into rows one after the other")
        if not len(self.always):
            raise ShortlistError("it has no token that every sentence may use")
        longest = int(np.diff(first_V).max(initial=0))
        if self.source_vocabulary * longest > MAX_TABLE_ENTRIES:
            raise ShortlistError(
                f"one of its {self.source_vocabulary} source tokens has {longest} entries, and as a table "
                f"they may have {MAX_TABLE_ENTRIES}"
            )
        largest = max(int(array.max(initial=0)) for array in (self.target_N, self.always))
        if largest >= self.target_vocabulary:
            known = f"there are {self.target_vocabulary} target tokens"
            raise ShortlistError(f"it holds target token {largest}, and {known}")

    @property
    def source_vocabulary(self) -> int:
        """Number of source tokens."""
        return len(self.first_V) - 1

    def save(self, path: Path) -> None:
        """Writes `shortlist.npz`; the same shortlist makes the same bytes."""
        np.savez_compressed(path, first=self.first_V, targets=self.target_N, always=self.always)

    @classmethod
    def from_bytes(cls, content: bytes, *, source_vocabulary: int, target_vocabulary: int) -> "Shortlist":
        """What `save` wrote. Raises ShortlistError where it is not for these vocabularies, or none.

        No more is unpacked than the vocabularies can need.
        """
        limits = (source_vocabulary + 1, MAX_TABLE_ENTRIES, target_vocabulary)
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                first, targets, always = map(partial(_read_array, archive), _ARRAYS, limits)
        except _UNREADABLE as error:
            raise ShortlistError(f"it is not a shortlist: {error}") from error
        shortlist = cls(first_V=first, target_N=targets, always=always, target_vocabulary=target_vocabulary)
        if shortlist.source_vocabulary != source_vocabulary:
            number = shortlist.source_vocabulary
            raise ShortlistError(f"it is for {number} source tokens, not {source_vocabulary}")
        return shortlist

    def candidates(self, sources: Sequence[Sequence[int]]) -> list[Ids]:
        """The target tokens that each sentence, given as source tokens, may use: ascending and distinct."""
        length = max(map(len, sources))
        # Filled up with a token of its own, a sentence gets no candidate from how long its neighbours are.
        source_ST = np.array([[*source, *[source[-1]] * (length - len(source))] for source in sources])
        chosen_SW = np.zeros((len(sources), self.target_vocabulary), np.bool_)
        chosen_SW[:, self.always] = True
        chosen_SW[np.arange(len(sources))[:, None, None], self._table[source_ST]] = True
        sentence, token = np.nonzero(chosen_SW)
        return np.split(token, np.cumsum(np.bincount(sentence, minlength=len(sources)))[:-1])

    @cached_property
    def _table(self) -> NDArray[np.unsignedinteger]:
        """The entries as a matrix, its rows filled up with a token that every sentence may use anyway."""
        sizes_V = np.diff(self.first_V.astype(np.int64))
        table_VM = np.full((len(sizes_V), max(1, int(sizes_V.max(initial=0)))), self.always[0])
        table_VM[np.arange(table_VM.shape[1]) < sizes_V[:, None]] = self.target_N
        return table_VM


def _read_array(archive: zipfile.ZipFile, name: str, max_entries: int) -> NDArray[np.unsignedinteger]:
    """A list of numbers. Raises ValueError, before anything is unpacked, where it says that it is longer."""
    entry = archive.getinfo(f"{name}.npy")
    with archive.open(entry) as file:
        # An entry gives no more bytes than it says, and all of them are there in the end.
        if entry.file_size > _MAX_HEADER_BYTES + max_entries * np.dtype(np.uint64).itemsize:
            size = f"{entry.file_size} bytes, for at most {max_entries} entries"
            raise ValueError(f"its {name} unpack to {size}")
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"its {name} are in a later form than numpy's 1.0")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.kind != "u" or len(shape) != 1:
            raise ValueError("its arrays are not all lists of unsigned integers")
        content = file.read()
    if len(content) != shape[0] * dtype.itemsize:
        raise ValueError(f"its {name} are cut short")
    return np.frombuffer(content, dtype)
