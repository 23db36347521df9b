"""Warnings of a corpus that is likely not as it was meant, given before it costs a training."""

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus

KNOWN_SHARE = 0.01
"""Most of the validation pairs that may be training pairs too, and of a side's tokens that may be unknown."""


def warnings_about(pairs: Pairs, valid: Corpus) -> list[str]:
    """One sentence for each warning. `pairs` are the training pairs, `valid` the validation corpus."""
    warnings = []
    seen = pairs.count_seen(valid)
    if seen > KNOWN_SHARE * len(valid):
        warnings.append(
            f"{seen:,} of {len(valid):,} validation pairs are training pairs too: on them is measured how "
            "well they were learnt by heart"
        )
    if pairs.num_copies > len(pairs) / 2:
        warnings.append(
            f"{pairs.num_copies:,} of {len(pairs):,} training pairs have the same text on both sides"
        )
    for side, share in zip(("source", "target"), pairs.unknown_shares(), strict=True):
        if share > KNOWN_SHARE:
            warnings.append(
                f"{share:.1%} of the {side} tokens are unknown to the vocabulary, and can't be learnt: raise "
                "vocabulary.character_coverage, or begin with no model of other scripts (training.start_from)"
            )
    return warnings
