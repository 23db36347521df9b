"""Transformers of random arrays, as importers give them."""

from typing import Any

import numpy as np

from dragoman_export.importers.subjects import sinusoids
from dragoman_export.reference.imported import (
    BIAS,
    OUTPUT,
    POSITIONS,
    SOURCE,
    TARGET,
    TARGET_POSITIONS,
    Floats,
    Imported,
    TransformerArchitecture,
    layer_parts,
)

WIDTH, UNITS, VOCABULARY = 32, 48, 60


def make_arrays(**changes: Any) -> Imported:
    """Two layers a side; `changes` are settings of the architecture."""
    settings: dict[str, Any] = {
        "past": "self-attention",
        "norm": "post",
        "activation": "relu",
        "embedding_scale": 1.0,
        "bos": 2,
        "never_produced": (0, 2),
    }
    sizes = {"width": WIDTH, "heads": 4, "feed_forward": UNITS, "encoder_layers": 2, "decoder_layers": 2}
    architecture = TransformerArchitecture(**(sizes | settings | changes))
    random = np.random.default_rng(3)
    weights: dict[str, Floats] = {}

    def draw(*shape: int, size: float = 1.0) -> Floats:
        return (random.normal(size=shape) * size).astype(np.float32)

    def linear(name: str, outputs: int, inputs: int) -> None:
        weights[f"{name}.weight"] = draw(outputs, inputs, size=inputs**-0.5)
        weights[f"{name}.bias"] = draw(outputs, size=0.1)

    def norm(name: str) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + draw(WIDTH, size=0.1), draw(WIDTH, size=0.1)

    weights[SOURCE] = weights[TARGET] = weights[OUTPUT] = draw(VOCABULARY, WIDTH, size=0.5)
    weights[POSITIONS] = weights[TARGET_POSITIONS] = sinusoids(110, WIDTH)
    weights[BIAS] = draw(VOCABULARY, size=0.3)
    for side in ("encoder", "decoder"):
        for part in layer_parts(architecture):
            if part.side == side and part.inputs:
                linear(part.own_name, part.outputs, part.inputs)
            elif part.side == side:
                norm(part.own_name)
        if architecture.norm == "pre":
            norm(f"{side}_norm")
    return Imported(architecture=architecture, weights=weights)
