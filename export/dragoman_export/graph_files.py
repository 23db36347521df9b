"""Graphs to files: `encoder.onnx`, `decoder_step.onnx` and those of a shortlist, with the weights of all in
one file beside them.

A weight that several graphs use, such as an embedding that both sides share, is stored once; onnxruntime maps
the file into memory.
"""

import hashlib
from pathlib import Path

import onnx_ir as ir
from dragoman_bundle.manifest import ENCODER_GRAPH, SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH, STEP_GRAPH

from dragoman_export.graphs.builder import Graphs
from dragoman_export.shortlist.graphs import ShortlistGraphs

WEIGHTS_FILE = "weights.bin"
MIN_BYTES = 1024
"""Smaller constants stay in the graph, where onnxruntime sees them while it reads shapes."""
ALIGNMENT = 64
"""A cache line: no kernel has to begin a matrix in the middle of one."""


def write_graphs(graphs: Graphs, folder: Path, shortlist: ShortlistGraphs | None = None) -> None:
    """Writes the graphs and their weights to the folder, which is made."""
    models = {ENCODER_GRAPH: graphs.encoder, STEP_GRAPH: graphs.decoder_step}
    if shortlist is not None:
        models |= {SHORTLIST_GRAPH: shortlist.shortlist, SHORTLIST_STEP_GRAPH: shortlist.decoder_step}
    folder.mkdir(parents=True)
    offsets: dict[tuple[str, bytes], int] = {}
    with (folder / WEIGHTS_FILE).open("wb") as weights:
        for name, original in models.items():
            model = original.clone()
            for value in model.graph.initializers.values():
                tensor = value.const_value
                assert tensor is not None
                if tensor.nbytes < MIN_BYTES:
                    continue
                content = tensor.tobytes()
                key = (tensor.dtype.name, hashlib.sha256(content).digest())
                if key not in offsets:
                    weights.write(bytes(-weights.tell() % ALIGNMENT))
                    offsets[key] = weights.tell()
                    weights.write(content)
                value.const_value = ir.ExternalTensor(
                    WEIGHTS_FILE,
                    offsets[key],
                    len(content),
                    tensor.dtype,
                    shape=ir.Shape(tensor.shape.numpy()),
                    name=str(value.name),
                    base_dir=folder,
                )
            ir.save(model, folder / f"{name}.onnx")
