"""How fast a whole file is translated: PyTorch, plain ONNX and the engine side by side."""

from benchmarks.scenarios.decode.comparison import command

__all__ = ["command"]
