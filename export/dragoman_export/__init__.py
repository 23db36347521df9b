"""Checkpoint to bundle: ONNX graphs in several precisions, held against PyTorch before they are written."""
