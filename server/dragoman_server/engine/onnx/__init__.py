"""A bundle's ONNX graphs as the engine's decoder. Only this part of the server knows onnxruntime."""
