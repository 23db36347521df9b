"""What models of CTranslate2 may hold that our Transformer has no place for, by the names of variables.

Our Transformer would be another model without it: so it is named and refused.
"""

from pathlib import Path

from dragoman_export.from_ctranslate2.errors import CTranslate2Error
from dragoman_export.from_ctranslate2.variables import Variables

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


def refuse_foreign(path: Path, variables: Variables, *, heads: int, width: int) -> None:
    """Raises CTranslate2Error for what is known and has no place, unless it says that there is none of it."""
    neutral = {
        "alibi": (0,),
        "alibi_use_positive_positions": (0, 1),
        "scale_alibi": (0, 1),
        "sliding_window": (0,),
        "num_heads_kv": (heads,),
        "multi_query_attention": (0,),
        "head_dim": (width // heads,),
    }
    for name in variables.unread():
        meaning = next((meaning for part, meaning in FOREIGN if part in name), "")
        last = name.rsplit("/", 1)[-1]
        if meaning and not (last in neutral and variables.number(name, 0) in neutral[last]):
            raise CTranslate2Error(f"{path} has {meaning} ({name}); such models can't be exported")


def refuse_unread(path: Path, variables: Variables) -> None:
    """Raises CTranslate2Error for what nobody has read."""
    # How several embeddings are merged, of which there is one.
    unread = [name for name in variables.unread() if not name.endswith("embeddings_merge")]
    if unread:
        raise CTranslate2Error(
            f"{path} has {unread[0]}, which is none of a Transformer's variables that are known; such models "
            "can't be exported"
        )
