"""What the manifest says of the tensors between the graphs, read from the graphs themselves."""

from collections.abc import Mapping

import onnx_ir as ir

from dragoman_bundle.manifest import TensorContract, TensorSpec
from dragoman_export.trace import Graphs

DTYPES = {
    ir.DataType.FLOAT: "float32",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BOOL: "bool",
    ir.DataType.INT64: "int64",
}


def tensor_contract(graphs: Mapping[str, Graphs]) -> TensorContract:
    """The memory and state that the decoder step of each precision takes."""
    steps = {precision: each.decoder_step.graph.inputs for precision, each in graphs.items()}
    specs: dict[str, TensorSpec] = {}
    for inputs in zip(*steps.values(), strict=True):
        shape = inputs[0].shape
        assert shape is not None
        specs[inputs[0].name] = TensorSpec(
            name=inputs[0].name,
            dtype={precision: DTYPES[value.dtype] for precision, value in zip(steps, inputs, strict=True)},
            shape=tuple(size if isinstance(size, int) else str(size) for size in shape),
            growth_axis=None,
        )
    return TensorContract(
        memory=tuple(spec for name, spec in specs.items() if name.startswith("memory.")),
        state=tuple(spec for name, spec in specs.items() if name.startswith("state.")),
    )
