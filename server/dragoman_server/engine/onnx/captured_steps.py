"""Decoder steps that a GPU replays from CUDA graphs, in places where tensors keep their addresses.

A step of few rows takes as long as it takes to launch its kernels one by one. A CUDA graph launches them at
once. onnxruntime captures one for each number that runs are given (`gpu_graph_id`) and replays it when the
number comes again, whatever is bound by then: it reads and writes where the captured run did. So a `Place` is
buffers for batches of one shape, bound once.

Knows onnxruntime; knows nothing of what the graphs compute. On a device without CUDA graphs everything here
works alike, and nothing is captured.

Shape suffixes: S sentences, K beam, T source positions, C = 2K continuations.
"""

import itertools
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from dragoman_server.engine.decoder import StepInput, StepOutput
from dragoman_server.engine.onnx.tensors import Array

NOT_CAPTURED = -1
"""The number of runs that are neither captured nor replayed."""
_STEPS_BEFORE = 16
"""Steps that a shape must have been used for to get places: a capture takes longer than many steps."""


class StepShape(NamedTuple):
    """What a step's tensors have their shapes from."""

    sentences: int
    beam: int
    positions: int
    """Source positions, T."""
    candidates: int
    """Candidates of a sentence; 0 without a shortlist."""


class Place:
    """Buffers for a batch of one shape, and a step bound to them. One batch holds it at a time.

    A step may not write the state that it reads, so there are two, which take turns: two CUDA graphs.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        shape: StepShape,
        memory: Mapping[str, OrtValue],
        state: Mapping[str, OrtValue],
        device: str,
        numbers: Iterator[int],
    ) -> None:
        """`memory` and `state` are a batch's of that shape: what is here is of their kinds."""
        S, K, T, _ = shape
        self.shape = shape
        self.memory = {name: _like(value, device) for name, value in memory.items()}
        """Where the batch's memory belongs, the candidates' too."""
        self._states = tuple({name: _like(value, device) for name, value in state.items()} for _ in range(2))
        self._turn = 0
        self._holder: weakref.ref[object] | None = None
        self._session = session
        given = {"token": np.int64, "parent": np.int64, "score": np.float32, "forced": np.int64}
        self._inputs = {
            name: OrtValue.ortvalue_from_shape_and_type([S, K], dtype, device)
            for name, dtype in given.items()
        }
        found = {
            "top_score": ([S, 2 * K], np.float32),
            "top_index": ([S, 2 * K], np.int64),
            "forced_score": ([S, K], np.float32),
            "attention": ([S, K, T], np.float32),
        }
        self._outputs = {
            name: OrtValue.ortvalue_from_shape_and_type(sizes, dtype, device)
            for name, (sizes, dtype) in found.items()
        }
        self._steps = [
            (self._bind(before, after), run_options(next(numbers)))
            for before, after in (self._states, self._states[::-1])
        ]

    @property
    def state(self) -> dict[str, OrtValue]:
        """The state that the next replayed step reads: a step before it must have been written there."""
        return self._states[self._turn]

    @property
    def is_free(self) -> bool:
        """Whether no batch holds it, or one that is gone."""
        return self._holder is None or self._holder() is None

    def hold(self, batch: object) -> None:
        """Gives it to a batch."""
        self._holder = weakref.ref(batch)

    def release(self) -> None:
        """Takes it back."""
        self._holder = None

    def step(self, rows: StepInput) -> StepOutput:
        """A step of the batch whose memory and state are here, with S sentences as they are padded."""
        for name, array in (
            ("token", rows.token_SK),
            ("parent", rows.parent_SK),
            ("score", rows.score_SK),
            ("forced", rows.forced_SK),
        ):
            self._inputs[name].update_inplace(np.ascontiguousarray(array))
        binding, options = self._steps[self._turn]
        self._session.run_with_iobinding(binding, options)
        self._turn = 1 - self._turn
        return StepOutput(
            top_score_SC=self._fetch("top_score"),
            top_index_SC=self._fetch("top_index"),
            forced_score_SK=self._fetch("forced_score"),
            attention_SKT=self._fetch("attention") if rows.wants_attention else None,
        )

    def _fetch(self, name: str) -> Array:
        # A copy: on the host it would be a view of what the next step overwrites.
        return np.array(self._outputs[name].numpy())

    def _bind(self, before: dict[str, OrtValue], after: dict[str, OrtValue]) -> onnxruntime.IOBinding:
        binding = self._session.io_binding()
        for name, value in (self._inputs | self.memory | before).items():
            binding.bind_ortvalue_input(name, value)
        results = self._outputs | {f"next_{name}": value for name, value in after.items()}
        for name, value in results.items():
            binding.bind_ortvalue_output(name, value)
        return binding


class CapturedSteps:
    """The places of a model's batches: two for each shape that is often stepped, up to so many shapes.

    Regrouping reads a batch's memory while it writes the new one, which may be of the same shape: hence two.
    """

    def __init__(self, session: onnxruntime.InferenceSession, *, device: str, max_shapes: int) -> None:
        """`max_shapes` bounds the memory: a place stays, as the shapes that come most come first."""
        self._session = session
        self._device = device
        self._max_shapes = max_shapes
        self._uses: Counter[StepShape] = Counter()
        self._places: dict[StepShape, tuple[Place, Place]] = {}
        self._numbers = itertools.count(1)

    def count(self, shape: StepShape, memory: Mapping[str, OrtValue], state: Mapping[str, OrtValue]) -> None:
        """A step of that shape was run in no place, on these."""
        if len(self._places) == self._max_shapes or shape in self._places:
            return
        self._uses[shape] += 1
        if self._uses[shape] == _STEPS_BEFORE:
            first, second = (
                Place(self._session, shape, memory, state, self._device, self._numbers) for _ in range(2)
            )
            self._places[shape] = (first, second)

    def take(self, shape: StepShape, batch: object) -> Place | None:
        """A place of that shape for the batch, other than the one that it holds, if there is one."""
        for place in self._places.get(shape, ()):
            if place.is_free:
                place.hold(batch)
                return place
        return None


def run_options(number: int) -> onnxruntime.RunOptions:
    """Options of runs that are captured, and then replayed, under that number."""
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    return options


def _like(value: OrtValue, device: str) -> OrtValue:
    return OrtValue.ortvalue_from_shape_and_type(value.shape(), value.element_type(), device)
