"""Batches of sentence pairs of similar length under a budget of padded tokens.

Shapes: S sentences, T source positions, U target positions.
"""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from torch import Tensor

from dragoman_training.data import token_ids
from dragoman_training.data.batch_plan import BatchPlan, draw_pairs, plan_batches, shuffler_of
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.token_ids import Learn, TokenIds, TokenizedCorpus
from dragoman_training.data.tokenizing import tokenize
from dragoman_training.data.vocabulary import SubwordSampler


@dataclass(frozen=True)
class Batch:
    """Padded sentence pairs."""

    source_ST: Tensor
    """Source ids, each sentence ending in eos, padded with the source's pad."""
    source_length_S: Tensor
    """Source lengths, eos included."""
    target_input_SU: Tensor
    """What the decoder reads: bos, then the target."""
    target_output_SU: Tensor
    """What it is to say: the target, then eos; padded with pad."""
    target_pad: int
    """The target's pad."""
    guide_SUT: Tensor | None = None
    """Where each target token comes from: weights that sum up to 1, or all 0. None where unknown."""

    @property
    def counted(self) -> Tensor:
        """Where there are target tokens to say rather than padding: [S, U] bool."""
        return self.target_output_SU != self.target_pad

    def to(self, device: torch.device) -> "Batch":
        """This batch on another device."""
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)


class Pairs:
    """A tokenized corpus that is cut into batches."""

    def __init__(
        self,
        corpus: Corpus | TokenizedCorpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        max_tokens: int | None,
        samplers: tuple[SubwordSampler | None, SubwordSampler | None] = (None, None),
    ) -> None:
        """Tokenizes the corpus if nobody has, without pairs with a side of more than `max_tokens` tokens.

        Left out, too, are pairs with a side of which the vocabulary's normalization leaves nothing.
        `samplers` are for `segment`, None for a side that is not sampled.
        """
        self._tokenizers = (source_tokenizer, target_tokenizer)
        self._max_tokens = max_tokens
        self._samplers = samplers
        if isinstance(corpus, Corpus):
            corpus = tokenize(corpus, self._tokenizers, max_tokens=max_tokens)
        self.corpus = corpus
        """What was tokenized, with what is known of it."""
        self._sides = corpus.sides
        self.left_out = {reason: number for reason, number in corpus.left_out.items() if number}
        self._links = corpus.links

    def count_seen(self, corpus: Corpus) -> int:
        """How many of the corpus' pairs are among these."""
        pairs = list(zip(corpus.sources, corpus.targets, strict=True))
        return token_ids.count_seen(pairs, self.corpus.mark_P)

    @property
    def is_guided(self) -> bool:
        """Whether batches say which tokens come from which."""
        return self._links is not None

    def guide(self, learn: Learn, *, max_pairs: int) -> None:
        """Makes batches say which tokens come from which, as is learnt from at most so many pairs.

        Only where no side is sampled: links are of one segmentation.
        """
        assert not any(self._samplers)
        self._links = token_ids.joined(token_ids.link_blocks(self._sides, learn, max_pairs))

    def segment(self, seed: int) -> None:
        """Draws other segmentations for the sides that are sampled; the seed alone decides which.

        A side whose sampled segmentation is longer than `max_tokens` keeps its best one.
        """
        if not any(self._samplers):
            return
        generator = random.Random(seed)
        assert self.corpus.texts is not None
        source, target = (
            side if sampler is None else self._sample(side, fixed, sampler, generator)
            for side, fixed, sampler in zip(self.corpus.sides, self.corpus.texts, self._samplers, strict=True)
        )
        self._sides = (source, target)

    def _sample(
        self, fixed: TokenIds, texts: Iterable[str], sampler: SubwordSampler, generator: random.Random
    ) -> TokenIds:
        """Another segmentation of each text."""
        drawn = (sampler.sample(text, generator) for text in texts)
        limit = self._max_tokens or math.inf
        chosen = (fixed[number].tolist() if len(ids) > limit else ids for number, ids in enumerate(drawn))
        return token_ids.flatten(chosen, fixed.ids_N.dtype)

    def __len__(self) -> int:
        return len(self._sides[0])

    def plan(self, budget_tokens: int, *, seed: int | None) -> BatchPlan:
        """Cuts an epoch into batches of pair numbers, as `plan_batches` does; `seed` decides all orders.

        It also decides which pairs come of a part whose weight is no whole number. None keeps all, by length.
        """
        shuffler, numbers_N = None if seed is None else shuffler_of(seed), None
        if shuffler and any(weight != 1 for _, weight in self.corpus.shares):
            numbers_N = draw_pairs(self.corpus.shares, shuffler)
        source_length_P, target_length_P = (side.length_S for side in self._sides)
        lengths = source_length_P, target_length_P
        return plan_batches(*lengths, budget_tokens, shuffler=shuffler, numbers_N=numbers_N)

    def num_target_tokens(self, numbers: Sequence[int]) -> int:
        """Target tokens of some pairs, eos included."""
        return int(self._sides[1].length_S[numbers].sum(dtype=np.int64)) + len(numbers)

    def batch(self, numbers: Sequence[int]) -> Batch:
        """The padded batch of some pairs."""
        sources, targets = ([side[number].tolist() for number in numbers] for side in self._sides)
        source, target = self._tokenizers
        return Batch(
            source_ST=pad_ids([[*ids, source.eos_id] for ids in sources], source.pad_id),
            source_length_S=torch.tensor([len(ids) + 1 for ids in sources]),
            target_input_SU=pad_ids([[target.bos_id, *ids] for ids in targets], target.pad_id),
            target_output_SU=pad_ids([[*ids, target.eos_id] for ids in targets], target.pad_id),
            target_pad=target.pad_id,
            guide_SUT=self._guides(numbers, sources, targets) if self._links is not None else None,
        )

    def _guides(
        self, numbers: Sequence[int], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> Tensor:
        assert self._links is not None
        # Both sides end in eos.
        guide_SUT = torch.zeros(len(numbers), max(map(len, targets)) + 1, max(map(len, sources)) + 1)
        for index, number in enumerate(numbers):
            source, target = torch.from_numpy(self._links[number].astype(np.int64)).view(-1, 2).T
            guide_SUT[index, target, source] = 1.0
        return guide_SUT / guide_SUT.sum(dim=2, keepdim=True).clamp(min=1)


def pad_ids(sentences: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Ids of sentences of any length as one tensor [S, T], padded at the end."""
    longest = max(len(sentence) for sentence in sentences)
    return torch.tensor([[*sentence, *[pad] * (longest - len(sentence))] for sentence in sentences])


KNOWN_SHARE = 0.01
"""Most of the validation pairs that may be training pairs too, and of a side's tokens that may be unknown."""


def warnings_about(pairs: Pairs, valid: Corpus) -> list[str]:
    """One sentence for each warning. `pairs` are the training pairs, `valid` the validation corpus."""
    warnings, corpus = [], pairs.corpus
    seen = pairs.count_seen(valid)
    if seen > KNOWN_SHARE * len(valid):
        warnings.append(
            f"{seen:,} of {len(valid):,} validation pairs are training pairs too: on them is measured how "
            "well they were learnt by heart"
        )
    if (copies := corpus.num_copies) > len(pairs) / 2:
        warnings.append(f"{copies:,} of {len(pairs):,} training pairs have the same text on both sides")
    for side, unknown, ids in zip(("source", "target"), corpus.num_unknown, corpus.sides, strict=True):
        if (share := unknown / max(len(ids.ids_N), 1)) > KNOWN_SHARE:
            warnings.append(
                f"{share:.1%} of the {side} tokens are unknown to the vocabulary, and can't be learnt: raise "
                "vocabulary.character_coverage, or begin with no model of other scripts (training.start_from)"
            )
    return warnings
