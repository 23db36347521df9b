"""Word alignments: the attention between tokens, summed up to words and given as offsets.

Pure. Which ranges are words, also in scripts without spaces, `words` says.

Shape suffixes: U target tokens, T source tokens, V source words, W target words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dragoman_bundle import Bundle

from dragoman_server.engine.request import Hypothesis
from dragoman_server.text.mapped import Span
from dragoman_server.text.translated import Alignment
from dragoman_server.text.words import words

FloatArray = npt.NDArray[np.floating]

MIN_WEIGHT = 0.3
"""Least share of a target word's attention that makes another link than the strongest one."""

_CHARACTERS_PER_TOKEN = 8
"""An estimate on the high side: most texts have fewer characters per token."""
_REST_OF_RUN = re.compile(r"\S*")


@dataclass(frozen=True, eq=False)
class Linked:
    """The words of two texts, and what those of the second come from."""

    sources: Sequence[Span]
    targets: Sequence[Span]
    weight_WV: FloatArray
    """The attention of each word of the second text on each of the first: the sum is 1, or 0."""

    @property
    def links(self) -> list[Alignment]:
        """The links, as `align` gives them."""
        return [
            Alignment(source=self.sources[index], target=target, weight=float(weight_V[index]))
            for target, weight_V in zip(self.targets, self.weight_WV, strict=True)
            for rank, index in enumerate(np.argsort(-weight_V, kind="stable"))
            if weight_V[index] >= MIN_WEIGHT or (rank == 0 and weight_V[index] > 0)
        ]

    def until(self, length: int) -> "Linked":
        """The same of a second text of which the end was taken away."""
        num_left = sum(end <= length for _, end in self.targets)
        return Linked(self.sources, self.targets[:num_left], self.weight_WV[:num_left])


def linked(text: str, ids: Sequence[int], hypothesis: Hypothesis, bundle: Bundle) -> Linked:
    """What links the model's text, with its source tokens, and a hypothesis: without attention nothing."""
    decoded = bundle.target_tokenizer.decode(hypothesis.tokens)
    attention_UT = hypothesis.attention
    if attention_UT is None:
        attention_UT = np.zeros((0, 0), dtype=np.float32)
    return _linked(
        text,
        _source_spans(text, ids, bundle),
        decoded.text,
        decoded.spans,
        # What a token comes from is known a step later then; the last one's end is not needed.
        attention_UT[int(bundle.manifest.attention_of_input) :],
    )


def align(
    *,
    source_text: str,
    source_spans: Sequence[Span],
    target_text: str,
    target_spans: Sequence[Span],
    attention_UT: FloatArray,
) -> list[Alignment]:
    """Links between the words of one unit, by target word and falling weight.

    The spans say which code points each token covers; rows and columns of `attention_UT` beyond them (the
    ends of the sentences) are left out, and so are words behind the last token, as of a unit that was cut.
    Tokens that it has no rows for are not looked at, and a word of none but such has no link.
    A target word's attention is the mean over its tokens, spread over
    the source words that each source token touches, and made to sum to 1. Its strongest link is always given,
    any other from `MIN_WEIGHT` on.
    """
    return _linked(source_text, source_spans, target_text, target_spans, attention_UT).links


def _linked(
    source_text: str,
    source_spans: Sequence[Span],
    target_text: str,
    target_spans: Sequence[Span],
    attention_UT: FloatArray,
) -> Linked:
    end = max((end for _, end in source_spans), default=0)
    rest_of_word = _REST_OF_RUN.match(source_text, end)
    assert rest_of_word is not None
    sources = list(words(source_text[: rest_of_word.end()], source_spans))
    targets = list(words(target_text, target_spans))
    if not sources or not targets or not attention_UT.size:
        return Linked(sources, targets, np.zeros((len(targets), len(sources)), dtype=np.float32))
    attention_UT = attention_UT[: len(target_spans), : len(source_spans)]
    source_TV, target_UW = _overlap(source_spans, sources), _overlap(target_spans, targets)
    target_UW = target_UW[: len(attention_UT)]
    return Linked(sources, targets, _normalise(target_UW.T @ attention_UT @ source_TV))


def _overlap(tokens: Sequence[Span], words: Sequence[Span]) -> FloatArray:
    """[tokens, words]: the share of each token's covered code points that lies in each word."""
    token_start, token_end = np.array(tokens, dtype=np.int64).reshape(-1, 2).T[..., None]
    word_start, word_end = np.array(words, dtype=np.int64).reshape(-1, 2).T
    common = np.maximum(np.minimum(token_end, word_end) - np.maximum(token_start, word_start), 0)
    return _normalise(common.astype(np.float32))


def _normalise(weights: FloatArray) -> FloatArray:
    """Rows that sum to 1; a row of zeros stays."""
    total = weights.sum(axis=1, keepdims=True)
    normalised: FloatArray = weights / np.where(total > 0, total, 1)
    return normalised


def _source_spans(text: str, ids: Sequence[int], bundle: Bundle) -> Sequence[Span]:
    """Where in its text each token of a unit stands; a unit that was truncated has fewer than its text.

    Reads no more of the text than it takes to find the same tokens again.
    """
    tokenizer = bundle.source_tokenizer
    length = _CHARACTERS_PER_TOKEN * (len(ids) + 1)
    while length < len(text):
        beginning = tokenizer.encode(text[:length])
        if len(beginning.ids) > len(ids) and tuple(beginning.ids[: len(ids)]) == tuple(ids):
            return beginning.spans[: len(ids)]
        length *= 2
    return tokenizer.encode(text).spans[: len(ids)]
