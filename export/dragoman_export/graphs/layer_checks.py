"""Whether a Transformer's layers differ in nothing but their weights, so that one stands for all."""

from torch import nn

from dragoman_training.models.transformer import Transformer

MISSING = "missing"
"""Stands for a part that a layer has not."""


def check_layers(model: Transformer) -> None:
    """Raises ValueError for layers that differ in structure, and for an alignment head in no layer."""
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        first, *others = (_structure(layer) for layer in layers)
        for number, other in enumerate(others, start=1):
            for part in sorted(first.keys() | other.keys()):
                found, expected = other.get(part, MISSING), first.get(part, MISSING)
                if found != expected:
                    raise ValueError(
                        f"{part} of {side} layer {number} is {found}, and of layer 0 {expected}: layers of a "
                        "Transformer that is exported differ in nothing but their weights"
                    )
    head, count = model.alignment_head, len(model.decoder_layers)
    if head is not None and head.layer not in range(count):
        raise ValueError(
            f"the alignment head is in decoder layer {head.layer}, and there are layers 0 to {count - 1}"
        )


def _structure(layer: nn.Module) -> dict[str, str]:
    """All that a layer is but for its weights, by the names of its parts."""
    parts: dict[str, str] = {}
    for name, module in layer.named_modules():
        parts[name or "the type"] = type(module).__name__
        # What a module was made with: sizes, numbers of heads, epsilons, and where its norm stands.
        for setting, value in vars(module).items():
            if not setting.startswith("_") and setting != "training":
                parts[f"{name}.{setting}"] = str(value)
    for name, weight in layer.state_dict().items():
        parts[name] = f"{weight.dtype} of {list(weight.shape)}"
    return parts
