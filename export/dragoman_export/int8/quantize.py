"""A float32 graph as an int8 graph."""

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from dragoman_export.int8.graph import Int8Graph
from dragoman_export.int8.linear import replace_embedding, replace_product
from dragoman_export.int8.recurrent import replace_recurrent

REWRITES = {
    "LSTM": replace_recurrent,
    "GRU": replace_recurrent,
    "MatMul": replace_product,
    "Gemm": replace_product,
    "Gather": replace_embedding,
}


def quantize(model: ir.Model) -> ir.Model:
    """A copy with all products with constant matrices, recurrent layers and token embeddings in int8."""
    model = model.clone()
    int8 = Int8Graph(model.graph)
    for node in list(model.graph):
        if node.op_type in REWRITES:
            REWRITES[node.op_type](int8, node)
    RemoveUnusedNodesPass()(model)
    return model
