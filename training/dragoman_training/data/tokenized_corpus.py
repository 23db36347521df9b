"""A corpus as token ids, and which of its pairs are of no use as such."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray

from dragoman_training.data.corpus import Corpus
from dragoman_training.data.token_ids import TokenIds, flatten, id_type


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenizedCorpus:
    """The pairs that are used, as ids without begin and end."""

    sides: tuple[TokenIds, TokenIds]
    """Sources and targets."""
    is_used: NDArray[np.bool_]
    """Of each pair of the corpus."""
    num_too_long: int
    num_one_sided: int
    """Pairs with a side of which normalization leaves nothing."""
    num_unknown: tuple[int, int]
    """Tokens that the vocabulary does not know, of sources and of targets."""


def tokenize(
    corpus: Corpus, tokenizers: tuple[Tokenizer, Tokenizer], *, max_tokens: int | None
) -> TokenizedCorpus:
    """Tokenizes a corpus, without pairs that have an empty side or one of more than `max_tokens` tokens."""
    return tokenize_pairs(corpus.sources, corpus.targets, tokenizers, max_tokens=max_tokens)


def tokenize_pairs(
    sources: Sequence[str],
    targets: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    max_tokens: int | None,
) -> TokenizedCorpus:
    """The same of texts; an empty source is one only where its text is not, for a language model has none."""
    ids = [own.encode_ids(texts) for own, texts in zip(tokenizers, (sources, targets), strict=True)]
    is_one_sided = np.array(
        [
            not target or (not source and bool(text))
            for source, target, text in zip(*ids, sources, strict=True)
        ],
        bool,
    )
    limit = np.inf if max_tokens is None else max_tokens
    is_short = np.array([max(len(each) for each in pair) <= limit for pair in zip(*ids, strict=True)], bool)
    is_used = is_short & ~is_one_sided
    kept = [[own[number] for number in np.flatnonzero(is_used)] for own in ids]
    source, target = (
        flatten(own, id_type(each.vocabulary_size)) for own, each in zip(kept, tokenizers, strict=True)
    )
    return TokenizedCorpus(
        sides=(source, target),
        is_used=is_used,
        num_too_long=int((~is_short & ~is_one_sided).sum()),
        num_one_sided=int(is_one_sided.sum()),
        num_unknown=(
            int((source.ids_N == tokenizers[0].unk_id).sum()),
            int((target.ids_N == tokenizers[1].unk_id).sum()),
        ),
    )
