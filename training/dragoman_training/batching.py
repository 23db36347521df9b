"""Batches of sentence pairs of similar length under a budget of padded tokens.

Shapes: S sentences, T source positions, U target positions.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_training.corpus import Corpus
from dragoman_training.subword_sampler import SubwordSampler

Pair = tuple[Sequence[int], Sequence[int]]


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
        """The same batch on another device."""
        return Batch(
            source_ST=self.source_ST.to(device),
            source_length_S=self.source_length_S.to(device),
            target_input_SU=self.target_input_SU.to(device),
            target_output_SU=self.target_output_SU.to(device),
            target_pad=self.target_pad,
            guide_SUT=None if self.guide_SUT is None else self.guide_SUT.to(device),
        )


class Pairs:
    """A tokenized corpus that is cut into batches."""

    def __init__(
        self,
        corpus: Corpus,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        max_tokens: int | None,
        samplers: tuple[SubwordSampler | None, SubwordSampler | None] = (None, None),
    ) -> None:
        """Tokenizes the corpus; pairs with a side of more than `max_tokens` tokens are left out.

        So are pairs with a side of which the vocabulary's normalization leaves nothing. `samplers` are for
        `segment`, None for a side that is not sampled.
        """
        sources = source_tokenizer.encode_ids(corpus.sources)
        targets = target_tokenizer.encode_ids(corpus.targets)
        self._tokenizers = (source_tokenizer, target_tokenizer)
        self._source_pad, self._source_eos = source_tokenizer.pad_id, source_tokenizer.eos_id
        self._pad, self._bos, self._eos = (
            target_tokenizer.pad_id,
            target_tokenizer.bos_id,
            target_tokenizer.eos_id,
        )
        one_sided = {
            number
            for number, (source, target) in enumerate(zip(sources, targets, strict=True))
            if not target or (corpus.sources[number] and not source)
        }
        kept = [
            number
            for number, (source, target) in enumerate(zip(sources, targets, strict=True))
            if number not in one_sided and (max_tokens is None or max(len(source), len(target)) <= max_tokens)
        ]
        self._best = [(sources[number], targets[number]) for number in kept]
        self._pairs = self._best
        self._max_tokens = max_tokens
        self.num_left_out = len(sources) - len(self._pairs) - len(one_sided)
        self.num_one_sided = corpus.num_one_sided + len(one_sided)
        self._samplers = samplers
        self._links: Sequence[NDArray[np.int32]] = ()
        self._texts = tuple(
            [texts[number] for number in kept] if sampler else []
            for texts, sampler in zip((corpus.sources, corpus.targets), samplers, strict=True)
        )

    def guide(self, link: Callable[[Sequence[Pair]], Sequence[NDArray[np.int32]]]) -> None:
        """From now on batches say which tokens come from which, by the links [N, 2] that `link` finds.

        Only where no side is sampled: links are of one segmentation.
        """
        assert not any(self._samplers)
        self._links = link(self._best)

    def segment(self, seed: int) -> None:
        """Draws other segmentations for the sides that are sampled; the seed alone decides which.

        A side whose sampled segmentation is longer than `max_tokens` keeps its best one.
        """
        generator = random.Random(seed)
        sides: list[list[list[int]]] = []
        for place, (sampler, texts) in enumerate(zip(self._samplers, self._texts, strict=True)):
            side = [pair[place] for pair in self._best]
            if sampler:
                drawn = [sampler.sample(text, generator) for text in texts]
                side = [
                    best if self._max_tokens and len(ids) > self._max_tokens else ids
                    for ids, best in zip(drawn, side, strict=True)
                ]
            sides.append(side)
        self._pairs = list(zip(*sides, strict=True))

    def unknown_shares(self) -> tuple[float, float]:
        """Of the source's tokens and of the target's, the share that the vocabulary does not know."""
        shares = []
        for side, tokenizer in enumerate(self._tokenizers):
            num_tokens = sum(len(pair[side]) for pair in self._best)
            num_unknown = sum(pair[side].count(tokenizer.unk_id) for pair in self._best)
            shares.append(num_unknown / max(num_tokens, 1))
        return shares[0], shares[1]

    def __len__(self) -> int:
        return len(self._pairs)

    def plan(self, budget_tokens: int, *, seed: int | None) -> list[list[int]]:
        """Cuts the corpus into batches of pair numbers.

        No batch has more than `budget_tokens` padded tokens on either side, but for a single longer pair.
        Pairs of equal length come in random order and so do batches, both decided by `seed`; None keeps
        the order of lengths.
        """
        order = list(range(len(self._pairs)))
        generator = random.Random(seed)
        if seed is not None:
            generator.shuffle(order)
        order.sort(key=lambda number: (len(self._pairs[number][1]), len(self._pairs[number][0])))
        batches: list[list[int]] = []
        longest = 0
        for number in order:
            longest = max(longest, *(len(side) + 1 for side in self._pairs[number]))
            if not batches or longest * (len(batches[-1]) + 1) > budget_tokens:
                batches.append([])
                longest = max(len(side) + 1 for side in self._pairs[number])
            batches[-1].append(number)
        if seed is not None:
            generator.shuffle(batches)
        return batches

    def num_target_tokens(self, numbers: Sequence[int]) -> int:
        """Target tokens of some pairs, eos included."""
        return sum(len(self._pairs[number][1]) + 1 for number in numbers)

    def batch(self, numbers: Sequence[int]) -> Batch:
        """The padded batch of some pairs."""
        pairs = [self._pairs[number] for number in numbers]
        return Batch(
            source_ST=pad_ids([[*source, self._source_eos] for source, _ in pairs], self._source_pad),
            source_length_S=torch.tensor([len(source) + 1 for source, _ in pairs]),
            target_input_SU=pad_ids([[self._bos, *target] for _, target in pairs], self._pad),
            target_output_SU=pad_ids([[*target, self._eos] for _, target in pairs], self._pad),
            target_pad=self._pad,
            guide_SUT=self._guides(numbers) if self._links else None,
        )

    def _guides(self, numbers: Sequence[int]) -> Tensor:
        longest_source, longest_target = (
            max(len(self._pairs[number][side]) for number in numbers) for side in (0, 1)
        )
        # Both sides end in eos.
        guide_SUT = torch.zeros(len(numbers), longest_target + 1, longest_source + 1)
        for place, number in enumerate(numbers):
            source, target = torch.from_numpy(self._links[number]).long().T
            guide_SUT[place, target, source] = 1.0
        return guide_SUT / guide_SUT.sum(dim=2, keepdim=True).clamp(min=1)


def pad_ids(sentences: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Ids of sentences of any length as one tensor [S, T], padded at the end."""
    longest = max(len(sentence) for sentence in sentences)
    return torch.tensor([[*sentence, *[pad] * (longest - len(sentence))] for sentence in sentences])
