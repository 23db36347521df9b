"""The weights that stay in fp32 in an int8 graph, known by their names.

A window that is predicted (Luong et al. 2015, equation 9) ends sharply: where rounding moves it, positions
come in or drop out, and a token's score jumps. So what predicts it is not rounded. Nor is what makes the
attentional state, whose rounding reaches the output layer and, as it is fed back, the next window.
"""

import onnx_ir as ir

HIDDEN = "window.hidden.weight"
"""What the name of a predictor's matrix ends in, behind its model's."""
BESIDE = ("window.direction_2H", "combine.weight")
"""What else such a model keeps in fp32."""


def kept_weights(graph: ir.Graph) -> set[str]:
    """The names of these weights in a graph, whose members may each have a window or not."""
    models = [name.removesuffix(HIDDEN) for name in graph.initializers if name.endswith(f".{HIDDEN}")]
    return {f"{model}{weight}" for model in models for weight in (HIDDEN, *BESIDE)}
