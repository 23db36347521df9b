"""How onnxruntime optimises a bundle's graphs: alike where they are checked and where they are served."""

SLOW_FUSIONS = {"cpu": ["SkipLayerNormFusion"], "cuda": []}
"""By device, optimisations that are switched off: their kernels are slower than the nodes they stand for, on
a CPU five times for a sum and its layer norm."""
