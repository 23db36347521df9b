"""A graph as onnxruntime makes it when it loads one."""

from pathlib import Path

import onnx
import onnxruntime

ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
STANDARD = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
"""With operators of the standard alone: no fusions of its own."""


def as_loaded(path: Path, level: onnxruntime.GraphOptimizationLevel = ALL) -> onnx.ModelProto:
    """What becomes of the graph at this level of optimisation."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    # Beside the weights, which it refers to.
    options.optimized_model_filepath = str(path.with_name(f"loaded-{path.name}"))
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)
