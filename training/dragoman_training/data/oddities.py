"""What about a corpus is likely not meant, for people to read before it costs them a training."""

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus

KNOWN_SHARE = 0.01
"""Most of the validation pairs that may be training pairs too, and of a side's tokens that may be unknown."""


def find_oddities(train: Corpus, valid: Corpus, pairs: Pairs) -> list[str]:
    """A sentence for each; `pairs` is the training corpus in tokens."""
    found = []
    trained = set(zip(train.sources, train.targets, strict=True))
    seen = sum(pair in trained for pair in zip(valid.sources, valid.targets, strict=True))
    if seen > KNOWN_SHARE * len(valid):
        found.append(
            f"{seen:,} of {len(valid):,} validation pairs are training pairs too: on them is measured how "
            "well they were learnt by heart"
        )
    equal = sum(map(str.__eq__, train.sources, train.targets))
    if equal > len(train) / 2:
        found.append(f"{equal:,} of {len(train):,} training pairs have the same text on both sides")
    for side, share in zip(("source", "target"), pairs.unknown_shares(), strict=True):
        if share > KNOWN_SHARE:
            found.append(
                f"{share:.1%} of the {side} tokens are unknown to the vocabulary, and can't be learnt: raise "
                "vocabulary.character_coverage, or begin with no model of other scripts (training.start_from)"
            )
    return found
