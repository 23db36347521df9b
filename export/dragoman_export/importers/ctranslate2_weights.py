"""CTranslate2's variables of a Transformer as our Transformer's weights and settings.

Owns what stands where on both sides, and what such a model may hold that our Transformer has no place for: it
would be another model without it, and so it is named and refused.
"""

import math
from typing import NamedTuple

import numpy as np

from dragoman_export.importers.ctranslate2_variables import BinaryModel, Floats
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.subjects import MAX_TOKENS, even_sinusoids, share_equal
from dragoman_export.reference.imported import (
    Activation,
    AlignmentHead,
    Imported,
    Name,
    Norm,
    TransformerArchitecture,
    layer_parts,
)

NUM_HEADS = {"": 8, "TransformerBase": 8, "TransformerBig": 16, "TransformerSpec": 8}
"""The kinds of models that are read, and their heads where nothing tells them."""
REVISIONS = range(2, 8)
ACTIVATIONS: tuple[Activation, ...] = ("relu", "gelu-tanh", "swish", "gelu", "gelu-sigmoid")
"""The activations by CTranslate2's numbers. The next two there are tanh and the logistic function, which our
Transformer has not."""
PARTS = {
    "self_attention.input": "self_attention/linear_0",
    "self_attention.output": "self_attention/linear_1",
    "self_residual.norm": "self_attention/layer_norm",
    "cross_attention.query": "attention/linear_0",
    "cross_attention.memory": "attention/linear_1",
    "cross_attention.output": "attention/linear_2",
    "cross_residual.norm": "attention/layer_norm",
    "feed_forward.expand": "ffn/linear_0",
    "feed_forward.contract": "ffn/linear_1",
    "feed_forward_residual.norm": "ffn/layer_norm",
}
"""Our parts of a layer and theirs."""


class _Side(NamedTuple):
    layers: int
    heads: int
    norm: Norm
    activation: Activation
    scale: float


def read_transformer(model: BinaryModel, *, norm_epsilon: float) -> Imported:
    """Everything of the model. Raises FormatError, naming what our Transformer has no place for.

    Where positions are not in the file, and where they are more, there are `MAX_TOKENS`. What the files do
    not say, which target token begins a translation and which are never produced, is as if there were none.
    """
    source_name = f"encoder/embeddings{'_0' if 'encoder/embeddings_0/weight' in model else ''}/weight"
    if "encoder/embeddings_1/weight" in model:
        raise model.error(" has source features beside the tokens; such models can't be exported")
    source = model.floats(source_name, None, None)
    target = model.floats("decoder/embeddings/weight", None, None)
    width = source.shape[1]
    encoder, decoder = (_read_side(model, side, width) for side in ("encoder", "decoder"))
    for field in ("heads", "norm", "activation", "scale"):
        if getattr(encoder, field) != getattr(decoder, field):
            raise FormatError(
                f"{model.path}: {field} is {getattr(encoder, field)} in the encoder and "
                f"{getattr(decoder, field)} in the decoder; only models with the same can be exported"
            )
    refuse_foreign(model, heads=decoder.heads, width=width)
    # As many as each of the layers must have.
    units = len(model.floats("encoder/layer_0/ffn/linear_0/weight", None, width))
    architecture = TransformerArchitecture(
        width=width,
        heads=decoder.heads,
        feed_forward=units,
        encoder_layers=encoder.layers,
        decoder_layers=decoder.layers,
        past="self-attention",
        norm=decoder.norm,
        activation=decoder.activation,
        embedding_scale=decoder.scale,
        norm_epsilon=norm_epsilon,
        alignment_head=_alignment_head(model, decoder),
    )
    output = model.floats("decoder/projection/weight", len(target), width)
    weights = {Name.SOURCE: source, Name.TARGET: target, Name.OUTPUT: output}
    weights[Name.BIAS] = _bias(model, "decoder/projection", len(target))
    if target.shape[1] != width:
        raise model.error(f": source embeddings are {width} wide and target embeddings {target.shape[1]}")
    for part in layer_parts(architecture):
        theirs = f"{part.side}/layer_{part.layer}/{PARTS[part.name]}"
        if part.inputs:
            weights[f"{part.own_name}.weight"] = model.floats(f"{theirs}/weight", part.outputs, part.inputs)
            weights[f"{part.own_name}.bias"] = _bias(model, theirs, part.outputs)
        else:
            weights |= _norm(model, theirs, part.own_name, width)
    for side in ("encoder", "decoder") if decoder.norm == "pre" else ():
        weights |= _norm(model, f"{side}/layer_norm", f"{side}_norm", width)
    positions = [_positions(model, side, width) for side in ("encoder", "decoder")]
    shortest = min(map(len, positions))
    # How several embeddings are merged, of which there is one, says nothing.
    if unread := [name for name in model.unread() if not name.endswith("embeddings_merge")]:
        raise FormatError(
            f"{model.path} has {unread[0]}, which is none of a Transformer's variables that are known; such "
            "models can't be exported"
        )
    weights[Name.POSITIONS], weights[Name.TARGET_POSITIONS] = (table[:shortest] for table in positions)
    return Imported(architecture=architecture, weights=share_equal(weights))


def _norm(model: BinaryModel, theirs: str, ours: str, width: int) -> dict[str, Floats]:
    scale = model.floats(f"{theirs}/gamma", width)
    if f"{theirs}/beta" not in model:
        raise FormatError(
            f"{theirs} has no beta: it is normalised by its root mean square (RMSNorm), which our "
            "Transformer has no place for"
        )
    return {f"{ours}.weight": scale, f"{ours}.bias": model.floats(f"{theirs}/beta", width)}


def _bias(model: BinaryModel, name: str, size: int) -> Floats:
    """The bias of a linear layer; of one without, zeros."""
    if f"{name}/bias" not in model:
        return np.zeros(size, np.float32)
    return model.floats(f"{name}/bias", size)


def _read_side(model: BinaryModel, side: str, width: int) -> _Side:
    def told(name: str, default: float) -> float:
        """A setting of this side; in older revisions, of both."""
        return model.number(f"{side}/{name}", model.number(name, default))

    layers = model.count(f"{side}/layer")
    if not layers:
        raise FormatError(f"{model.path} has no layers of {side}")
    heads = int(told("num_heads", NUM_HEADS[model.spec]))
    if not 0 < heads <= width or width % heads:
        raise FormatError(f"{model.path}: {side} has {heads} heads, which do not divide {width}")
    number = int(told("activation", 0))
    if not 0 <= number < len(ACTIVATIONS):
        raise FormatError(
            f"{model.path}: its feed-forward layers have the activation {number} of CTranslate2; known are "
            + ", ".join(f"{index} ({name})" for index, name in enumerate(ACTIVATIONS))
        )
    return _Side(
        layers=layers,
        heads=heads,
        norm="pre" if told("pre_norm", 1) else "post",
        activation=ACTIVATIONS[number],
        scale=_scale(model, side, width),
    )


def _scale(model: BinaryModel, side: str, width: int) -> float:
    """What embeddings are multiplied by: a truth value stands for the root of the width, or for 1."""
    name = f"{side}/scale_embeddings"
    if name not in model:
        name = f"{side}/embeddings/multiply_by_sqrt_depth"
    scale = model.number(name, 1)
    if name not in model or model.is_flag(name):
        return math.sqrt(width) if scale else 1.0
    return math.sqrt(width) if math.isclose(scale, math.sqrt(width), rel_tol=1e-5) else scale


def _positions(model: BinaryModel, side: str, width: int) -> Floats:
    if (name := f"{side}/position_encodings/encodings") in model:
        return model.floats(name, None, width)[:MAX_TOKENS]
    if width % 2 or width < 4:
        raise FormatError(
            f"positions are not in the model, and it is {width} wide: give an even width from 4 on"
        )
    return even_sinusoids(MAX_TOKENS, width, first=1)


def _alignment_head(model: BinaryModel, decoder: _Side) -> AlignmentHead | None:
    """The head that CTranslate2 aligns by, the first of some; None for the mean of all of the last layer."""
    layer, heads = (
        int(model.number(f"decoder/alignment_{name}", model.number(f"alignment_{name}", default)))
        for name, default in (("layer", -1), ("heads", 1))
    )
    if layer < 0:
        layer += decoder.layers
    if not 0 <= layer < decoder.layers:
        raise FormatError(f"alignments are said to be those of layer {layer}; there are {decoder.layers}")
    if heads in (0, decoder.heads) and layer == decoder.layers - 1 and decoder.heads > 1:
        return None
    return AlignmentHead(layer=layer, head=0)


FOREIGN = (
    ("relative_attention_bias", "T5's bias of relative positions"),
    ("relative_attention_max_distance", "T5's bias of relative positions"),
    ("relative_", "relative positions"),
    ("rotary_", "rotary positions"),
    ("alibi", "positions as biases (ALiBi)"),
    ("num_heads_kv", "several heads to one of keys and values (grouped-query attention)"),
    ("multi_query_attention", "one head of keys and values for all (multi-query attention)"),
    ("linear_0_noact", "gated feed-forward layers"),
    ("layernorm_embedding", "normalised embeddings"),
    ("project_in", "a projection behind the embedding"),
    ("project_out", "a projection before the output layer"),
    ("scale_outputs", "scaled outputs"),
    ("sliding_window", "a sliding window"),
    ("final_logit_softcapping", "soft caps of logits"),
    ("layer_scalar", "scaled layers"),
    ("q_norm", "normalised queries and keys"),
    ("k_norm", "normalised queries and keys"),
    ("v_norm", "normalised values"),
    ("memory_kv", "merged attention"),
    ("weight_zero", "weights quantized as AWQ"),
    ("head_dim", "heads of a width of their own"),
    ("queries_scale", "scaled queries"),
    ("input_layer_norm", "parallel layers or more than one norm around each"),
    ("post_attention_layer_norm", "parallel layers or more than one norm around each"),
    ("shared_layer_norm", "parallel layers"),
    ("feedforward_layer_norm", "more than one norm around each layer"),
)
"""What a variable's name holds, and what that means."""


def refuse_foreign(model: BinaryModel, *, heads: int, width: int) -> None:
    """Raises FormatError for what is known and has no place, unless it says that there is none of it."""
    neutral = {
        "alibi": (0,),
        "alibi_use_positive_positions": (0, 1),
        "scale_alibi": (0, 1),
        "sliding_window": (0,),
        "num_heads_kv": (heads,),
        "multi_query_attention": (0,),
        "head_dim": (width // heads,),
    }
    for name in model.unread():
        meaning = next((meaning for part, meaning in FOREIGN if part in name), "")
        last = name.rsplit("/", 1)[-1]
        if meaning and not (last in neutral and model.number(name, 0) in neutral[last]):
            raise FormatError(f"{model.path} has {meaning} ({name}); such models can't be exported")
