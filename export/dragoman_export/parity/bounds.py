"""How far graphs of a lower precision may be from the reference, and what is said of those that are farther.

Two questions, each with its bounds:
- Are they the graphs of this model? Rounding alone puts a sound int8 graph as far from the reference as that
  is when it rounds the same things, however deep the model is and however sure of itself. What is wrong with
  a graph comes on top of that, and shows in what it says or in the memory and state of the layer it is in.
- Does a user lose by them? A model that rounding ruins is refused though its graphs are sound.
"""

from dataclasses import dataclass

from dragoman_export.parity.loss import Loss


class ParityError(ValueError):
    """The exported graphs do not decode as the reference does. Says what differed, where and by how much."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How far a lower precision may be off, but for `beam_error` in shares of the reference that rounds."""

    divergence: float
    """Mean divergence from the reference."""
    distance: float
    """Distance of each tensor of memory and state."""
    attention: float
    """Mean over tokens of the largest difference of an attention weight."""
    beam_error: float
    """Difference of a hypothesis's log-probability in a beam from what the same graphs give it alone."""


BOUNDS = {
    "fp16": Bound(divergence=0.25, distance=0.25, attention=0.5, beam_error=0.05),
    "int8": Bound(divergence=4, distance=3, attention=3, beam_error=0.05),
}
"""docs/decisions/0015-what-a-precision-loses.md has what sound and broken graphs come to."""
LEAST_DIVERGENCE = 1e-6
LEAST_DISTANCE = 2e-3
LEAST_ATTENTION = 1e-3
"""What is allowed wherever the reference rounding to int8 is hardly off at all."""
MAX_LOSS_SHARE = 0.1
"""Largest divergence as a share of what the model itself leaves open, its entropy …"""
MAX_LOSS = 0.01
"""… and in nats, a hundredth of a token's probability, which no model is refused for."""


def check_loss(precision: str, found: Loss, rounded: Loss, entropy: float) -> None:
    """Raises ParityError where graphs of a lower precision are farther off than is allowed.

    `rounded` is how far the reference is that rounds to eight bits, and `entropy` its mean, in nats.
    """
    bound, refused = BOUNDS[precision], f"the {precision} graphs are too far from the reference:"
    divergence, reference = (float(each.divergence_N.mean()) for each in (found, rounded))
    tokens = len(found.divergence_N)
    told = f"over {tokens} tokens, and the reference rounding to eight bits {reference:.2g};"
    # Written so that what is no number fails.
    allowed = max(LEAST_DIVERGENCE, bound.divergence * reference)
    if not divergence <= allowed:
        raise ParityError(
            f"{refused} they lose {divergence:.2g} nats a token {told} {allowed:.2g} is allowed"
        )
    for name, distance in found.tensors.items():
        allowed = max(LEAST_DISTANCE, bound.distance * rounded.tensors[name])
        if not distance <= allowed:
            raise ParityError(
                f"{refused} their {name} is off by {distance:.2%} of its length; the reference rounding to "
                f"eight bits by {rounded.tensors[name]:.2%}; {allowed:.2%} is allowed"
            )
    attention, reference = (float(each.attention_N.mean()) for each in (found, rounded))
    allowed = max(LEAST_ATTENTION, bound.attention * reference)
    if not attention <= allowed:
        raise ParityError(
            f"{refused} a token's attention differs by {attention:.2g} at its worst position, in the mean "
            f"over {tokens} tokens; {allowed:.2g} is allowed"
        )
    allowed = max(MAX_LOSS, MAX_LOSS_SHARE * entropy)
    if not divergence <= allowed:
        raise ParityError(
            f"the {precision} graphs are sound, but the model loses too much by rounding: {divergence:.2g} "
            f"nats a token, where it is unsure by {entropy:.2g} itself; {allowed:.2g} is allowed"
        )
