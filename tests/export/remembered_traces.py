"""Tracing a model takes many seconds and depends on nothing else: it is done once for all tests."""

import io
import pickle
from hashlib import sha256
from pathlib import Path

import onnx_ir as ir
import torch
from tests.once import once

from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.trace import trace
from dragoman_training.models import Seq2Seq


class RememberedTraces:
    """`trace` that works once for each model and type, and else reads what came of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self,
        model: Seq2Seq,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> Graphs:
        made: list[Graphs] = []

        def make(folder: Path) -> None:
            graphs = trace(model, dtype=dtype)
            ir.save(graphs.encoder, folder / "encoder.onnx")
            ir.save(graphs.decoder_step, folder / "decoder_step.onnx")
            made.append(graphs)

        folder = once(self._folder / f"trace-{_fingerprint(model, dtype)}", make)
        if made:
            # Whoever comes first goes on with what was traced, as outside of tests.
            return made[0]
        return Graphs(ir.load(folder / "encoder.onnx"), ir.load(folder / "decoder_step.onnx"))


def _fingerprint(*what: object) -> str:
    """The same for equal models, whichever process made them."""
    content = io.BytesIO()
    _Pickler(content).dump(what)
    return sha256(content.getvalue()).hexdigest()


class _Pickler(pickle.Pickler):
    """Writes a tensor as its values: torch would write where they are in memory. Of a name it writes no
    reference: whether two equal ones are one object is the reader's of a file."""

    def persistent_id(self, value: object) -> object:
        if isinstance(value, str):
            return b"name " + value.encode()
        if not isinstance(value, torch.Tensor):
            return None
        return (
            str(value.dtype),
            tuple(value.shape),
            value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes(),
        )
