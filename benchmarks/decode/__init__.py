"""How fast a whole file is translated: tutorial loop, PyTorch, plain ONNX and the engine side by side."""
