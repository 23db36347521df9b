"""Which of a Transformer's heads tells what its words come from, found by an alignment that needs no model.

The heads of the last layers look at what the next token comes from, though spread over many; those of the
first at what the token just read comes from, and one of them often at little else (Chen et al. 2020,
"Accurate Word Alignment Induction from Neural Machine Translation", section 3). Each is compared with the
links that IBM model 1 finds in training pairs.

Shapes: S sentences, K = 1, H heads, T source positions, U target tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from dragoman_training.alignment.pieces import TranslationTable, learn_table
from dragoman_training.data.corpus import Corpus, evenly_spaced
from dragoman_training.data.training_corpus import token_pairs
from dragoman_training.data.vocabulary import Tokenizers
from dragoman_training.decoding.forced_attention import attention_along
from dragoman_training.models.layers.transformer_layers import DecoderLayer
from dragoman_training.models.transformer import AlignmentHead, Transformer

MAX_PAIRS = 20_000
"""Training pairs that the table is learnt from, evenly spread over the corpus."""
NUM_EXAMINED = 400
"""Pairs at most that the heads are compared with."""
BATCH = 20
"""Sentences that are looked at together."""

Pair = tuple[Sequence[int], Sequence[int]]
TokenAlignment = dict[int, int]
"""The source position that each target position comes from."""


@dataclass(frozen=True, kw_only=True)
class ChosenHead:
    """A head whose weights may be a Transformer's alignments."""

    head: AlignmentHead | None
    """None: the mean over the heads of the last layer."""
    of_input: bool
    """Whether a token's weights are taken from the step that reads it, not the one that predicts it."""
    reason: str = ""
    """Which it is and why, for people."""
    share: float = 0.0
    """The share of the links that its strongest weights have too."""


def choose_head(
    model: Transformer, source: Tokenizer, target: Tokenizer, corpus: Corpus, *, max_tokens: int
) -> ChosenHead:
    """The head that agrees best, in pairs of at most `max_tokens` a side; the mean where none does better."""
    pairs = token_pairs(corpus, source, target, max_pairs=MAX_PAIRS, max_tokens=max_tokens)
    if not pairs:
        reason = "no training pair is short enough to choose a head by; the last layer's mean it is"
        return ChosenHead(head=None, of_input=False, reason=reason)
    table = learn_table(pairs, source_vocabulary=source.vocabulary_size)
    examined = [pairs[place] for place in evenly_spaced(len(pairs), NUM_EXAMINED)]
    ended = [([*from_, source.eos_id], [*to, target.eos_id]) for from_, to in examined]
    links = [likeliest_links(table, pair) for pair in examined]
    mean, *heads = agreements(model, (source, target), ended, links)
    best = max(mean, *heads, key=lambda each: each.share)
    of_mean = f"the last layer's mean {mean.share:.1%}"
    if best.head is None:
        return replace(mean, reason=f"no head has more of IBM model 1's links than {of_mean}")
    reason = (
        f"head {best.head.head + 1} of decoder layer {best.head.layer + 1}, of the token "
        f"{'read' if best.of_input else 'predicted'}, has {best.share:.1%} of IBM model 1's links, "
        f"and {of_mean}"
    )
    return replace(best, reason=reason)


def likeliest_links(table: TranslationTable, pair: Pair) -> TokenAlignment:
    """The source token that each target token most likely comes from, unless that is NULL."""
    source, target = pair
    rows = [table.row(token) for token in (*source, table.null)]
    links = {}
    for place, token in enumerate(target):
        probabilities = [row.get(token, 0.0) for row in rows]
        likeliest = int(np.argmax(probabilities))
        if likeliest < len(source):
            links[place] = likeliest
    return links


def agreements(
    model: Transformer, tokenizers: Tokenizers, pairs: Sequence[Pair], links: Sequence[TokenAlignment]
) -> list[ChosenHead]:
    """The agreement of the last layer's mean, then of every head, both ways; only pairs have their eos."""
    numbers = product(range(model.config.decoder_layers), range(model.config.heads))
    heads = [AlignmentHead(layer=layer, head=head) for layer, head in numbers]
    choices: list[tuple[AlignmentHead | None, bool]] = [(None, False)]
    choices += [(head, of_input) for head in heads for of_input in (False, True)]
    hits = dict.fromkeys(choices, 0)
    for first in range(0, len(pairs), BATCH):
        looks = look_through(model, tokenizers, pairs[first : first + BATCH])
        for look_LHUT, own in zip(looks, links[first : first + BATCH], strict=True):
            for head, of_input in choices:
                weights_UT = look_LHUT[-1].mean(axis=0) if head is None else look_LHUT[head.layer, head.head]
                from_U = weights_UT[int(of_input) :, :-1].argmax(axis=1)
                hits[head, of_input] += sum(int(from_U[place]) == source for place, source in own.items())
    num_links = max(1, sum(map(len, links)))
    return [ChosenHead(head=one[0], of_input=one[1], share=hits[one] / num_links) for one in choices]


def look_through(
    model: Transformer, tokenizers: Tokenizers, pairs: Sequence[Pair]
) -> list[NDArray[np.float32]]:
    """Where all layers and heads look while they predict the target, pair by pair: [L, H, U, T]."""
    sources, targets = zip(*pairs, strict=True)
    steps: list[list[Tensor]] = [[] for _ in model.decoder_layers]

    def hook(own: list[Tensor], layer: nn.Module) -> RemovableHandle:
        assert isinstance(layer, DecoderLayer)
        heads = layer.cross_attention.heads
        return heads.register_forward_hook(lambda _, given, output: own.append(output[1].float().cpu()))

    handles = list(map(hook, steps, model.decoder_layers))
    try:
        attention_along(model, tokenizers, sources, targets)
    finally:
        for handle in handles:
            handle.remove()
    # Steps of layers to layers of steps: U times [S, H, 1, T] -> [S, L, H, U, T]
    looks_SLHUT = torch.stack([torch.cat(own, dim=2) for own in steps], dim=1).numpy()
    sizes = zip(looks_SLHUT, map(len, sources), map(len, targets), strict=True)
    return [look_LHUT[:, :, :num_targets, :num_sources] for look_LHUT, num_sources, num_targets in sizes]
