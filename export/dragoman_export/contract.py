"""What the manifest says of the tensors between the graphs, read from the graphs themselves."""

from collections.abc import Mapping

import onnx_ir as ir
from dragoman_bundle.manifest import TensorContract, TensorSpec

from dragoman_export.graphs.attention.kernels import PAST
from dragoman_export.graphs.builder import GROWTH, Graphs
from dragoman_export.shortlist.graphs import ShortlistGraphs

DTYPES = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BOOL: "bool",
    ir.DataType.INT64: "int64",
    ir.DataType.INT8: "int8",
}


def tensor_contract(graphs: Mapping[str, Graphs]) -> TensorContract:
    """The memory and state that the decoder step of each precision takes."""
    steps = {
        precision: [value for value in pair.decoder_step.graph.inputs if _is_carried(value)]
        for precision, pair in graphs.items()
    }
    specs: dict[str, TensorSpec] = {}
    for inputs in zip(*steps.values(), strict=True):
        assert inputs[0].shape is not None
        shape = tuple(size if isinstance(size, int) else str(size) for size in inputs[0].shape)
        specs[inputs[0].name] = TensorSpec(
            name=inputs[0].name,
            dtype={precision: DTYPES[value.dtype] for precision, value in zip(steps, inputs, strict=True)},
            shape=shape,
            growth_axis=shape.index(GROWTH) if GROWTH in shape else None,
            padded_behind=tuple(
                precision for precision, value in zip(steps, inputs, strict=True) if _is_packed(value)
            ),
        )
    return TensorContract(
        memory=tuple(spec for name, spec in specs.items() if name.startswith("memory.")),
        state=tuple(spec for name, spec in specs.items() if name.startswith("state.")),
    )


def _is_carried(value: ir.Value) -> bool:
    """Whether an input of a step is memory or state, and not of the step alone."""
    return str(value.name).startswith(("memory.", "state."))


def _is_packed(state: ir.Value) -> bool:
    """Whether its rows, once they are gathered by parent, are read by the kernel that packs pasts."""
    gathered = [node.outputs[0] for node in state.consumers() if node.op_type == "Gather"]
    return any(node.op_type == PAST for value in gathered for node in value.consumers())


def shortlist_memory(graphs: Mapping[str, ShortlistGraphs]) -> tuple[TensorSpec, ...]:
    """The memory that the shortlist's graphs of each precision make of candidates; not all make the same."""
    outputs = {
        precision: {str(value.name): value for value in pair.shortlist.graph.outputs}
        for precision, pair in graphs.items()
    }
    specs = []
    for name in sorted({name for values in outputs.values() for name in values}):
        having = {precision: values[name] for precision, values in outputs.items() if name in values}
        shape = next(iter(having.values())).shape
        assert shape is not None
        dtypes = {precision: value.dtype for precision, value in having.items()}
        specs.append(
            TensorSpec(
                name=name,
                dtype={precision: DTYPES[dtype] for precision, dtype in dtypes.items() if dtype is not None},
                shape=tuple(size if isinstance(size, int) else str(size) for size in shape),
                growth_axis=None,
            )
        )
    return tuple(specs)
