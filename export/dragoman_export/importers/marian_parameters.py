"""Marian's parameters by our names and in our shapes, whether the file has them in floats or in 8 bits.

Shapes: N outputs, K inputs of a matrix.
"""

from collections.abc import Sequence

import numpy as np

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian_items import NOT_TRANSPOSED, Items
from dragoman_export.reference.imported import BIAS, OUTPUT, SOURCE, TARGET, Floats, StoredWeight

OUTPUT_ALPHA = "none"
"""What an alpha calls the output layer's matrix where that is an embedding."""


class Parameters:
    """Puts what a file holds among the weights of an import, and knows what nobody has read."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._unread = {*items.floats, *items.stored}
        self.weights: dict[str, Floats] = {}
        self.stored: dict[str, StoredWeight] = {}
        self.steps: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._items.floats or name in self._items.stored

    def matrix(self, ours: str, names: Sequence[str], *, outputs: int, inputs: int) -> None:
        """Matrices that read the same rows, one below the other; `outputs` is the number of all."""
        items = self._items
        is_stored = [name in items.stored for name in names]
        if all(is_stored):
            parts = [items.stored[name] for name in names]
            self.stored[ours] = StoredWeight(
                np.concatenate([part.codes_NK for part in parts]),
                np.concatenate([part.scale_N for part in parts]),
            )
            self.weights[ours] = self.stored[ours].floats()
            self._unread -= set(names)
        elif any(is_stored):
            raise FormatError(f"{items.path}: of {', '.join(names)} some are in 8 bits and some are not")
        else:
            arrays = [self._floats(name) for name in names]
            rows = [
                array if NOT_TRANSPOSED in name else array.T
                for name, array in zip(names, arrays, strict=True)
            ]
            self.weights[ours] = np.concatenate(rows) if len(rows) > 1 else np.ascontiguousarray(rows[0])
        self._check(ours, names, (outputs, inputs))
        self._step(ours, names)

    def vector(self, ours: str, names: Sequence[str], size: int) -> None:
        """Vectors one behind the other; a name of "" stands for zeros of as many as another has."""
        arrays = {name: self._floats(name).reshape(-1) for name in names if name}
        zeros = np.zeros(size // len(names), np.float32)
        self.weights[ours] = np.concatenate([arrays.get(name, zeros) for name in names])
        self._check(ours, names, (size,))

    def tables(self, *, tied_source: bool, tied_output: bool, width: int, output: str, bias: str) -> None:
        """The embeddings of both sides, and the output layer, of which `output` begins the name.

        One of them may stand for others.
        """
        source = "Wemb" if tied_source else "encoder_Wemb"
        target = "Wemb" if tied_source else "decoder_Wemb"
        for ours, name in ((SOURCE, source), (TARGET, target)):
            rows = self._rows(name)
            self.matrix(ours, [name], outputs=rows, inputs=width)
        if tied_source:
            self._same(TARGET, SOURCE)
        pieces = len(self.weights[TARGET])
        if tied_output:
            self._same(OUTPUT, TARGET)
            # Whatever name a graph has for what is tied.
            for ours in (
                name for name in (SOURCE, TARGET, OUTPUT) if self.weights[name] is self.weights[OUTPUT]
            ):
                self._step(ours, [OUTPUT_ALPHA])
        elif f"{output}_Wt" in self:
            # This one alone is [outputs, inputs] in Marian, too.
            array = self._floats(f"{output}_Wt")
            self.weights[OUTPUT] = np.ascontiguousarray(array)
            self._check(OUTPUT, [f"{output}_Wt"], (pieces, width))
        else:
            self.matrix(OUTPUT, [f"{output}_W"], outputs=pieces, inputs=width)
        self.vector(BIAS, [bias], pieces)

    def check_all_read(self) -> None:
        """Raises FormatError for what nobody has read."""
        unread = sorted(name for name in self._unread if not name.startswith("special:"))
        if unread:
            raise FormatError(
                f"{self._items.path} has {unread[0]}, which its configuration says nothing of; such a model "
                "can't be imported"
            )

    def _rows(self, name: str) -> int:
        stored = self._items.stored.get(name)
        return len(self._items.floats.get(name, ())) if stored is None else len(stored.codes_NK)

    def _same(self, ours: str, other: str) -> None:
        self.weights[ours] = self.weights[other]
        if other in self.stored:
            self.stored[ours] = self.stored[other]

    def _step(self, ours: str, names: Sequence[str]) -> None:
        alphas = [self._items.alphas[name] for name in names if name in self._items.alphas]
        if alphas:
            # They read the same rows, of which none is to be cut off.
            self.steps[ours] = 1 / min(alphas)

    def _floats(self, name: str) -> Floats:
        if name in self._items.stored:
            self._unread.discard(name)
            return self._items.stored[name].floats()
        if name not in self._items.floats:
            raise FormatError(f"{self._items.path} has no {name}, which its configuration asks for")
        self._unread.discard(name)
        return self._items.floats[name]

    def _check(self, ours: str, names: Sequence[str], shape: tuple[int, ...]) -> None:
        found = self.weights[ours].shape
        if found != shape:
            raise FormatError(
                f"{self._items.path}: {', '.join(filter(None, names))} come to {list(found)} (outputs "
                f"first), and its configuration asks for {list(shape)}"
            )
        if not np.isfinite(self.weights[ours]).all():
            raise FormatError(f"{self._items.path}: {', '.join(names)} hold what is no number")
