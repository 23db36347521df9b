"""How large a lexical shortlist is, and what is kept of a table of translations.

The bundle package owns the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_training.alignment.pieces import TranslationTable


@dataclass(frozen=True, kw_only=True)
class ShortlistOptions:
    """How large a shortlist is. Raises ValueError, naming the field, for a size that makes no sense."""

    max_targets: int = 50
    """Most target tokens of a source token."""
    min_probability: float = 1e-4
    """Least probability of a target token, given its source token."""
    num_frequent: int = 100
    """Target tokens that every sentence may use: those most frequent in the corpus."""

    def __post_init__(self) -> None:
        if self.max_targets < 1:
            raise ValueError(f"max_targets is {self.max_targets}; it must be at least 1")
        if self.num_frequent < 0:
            raise ValueError(f"num_frequent is {self.num_frequent}; it must be 0 or more")
        if not 0 <= self.min_probability <= 1:
            raise ValueError(f"min_probability is {self.min_probability}; it must be from 0 to 1")

    def command_line(self, asked: str = "--shortlist") -> str:
        """The options of `dragoman export` that ask for such a shortlist; `asked` says what it is made of."""
        sizes = (
            ("--shortlist-targets", self.max_targets, ShortlistOptions.max_targets),
            ("--shortlist-probability", self.min_probability, ShortlistOptions.min_probability),
            ("--shortlist-frequent", self.num_frequent, ShortlistOptions.num_frequent),
        )
        return " ".join([asked, *(f"{name} {size}" for name, size, usual in sizes if size != usual)])


def make_shortlist(
    table: TranslationTable,
    count: Sequence[int] | np.ndarray,
    source: Tokenizer,
    target: Tokenizer,
    options: ShortlistOptions,
) -> Shortlist:
    """The table's likeliest targets; `count` is how often each target token occurs, from the first id on.

    With a vocabulary that both sides share, a source token may also stand as it is: names and numbers do.
    """
    pruned = table.prune(max_targets=options.max_targets, min_probability=options.min_probability)
    frequent = np.argsort(-np.asarray(count), kind="stable")[: options.num_frequent]
    rows = [
        pruned.target_P[pruned.first_V[token] : pruned.first_V[token + 1]]
        for token in range(source.vocabulary_size)
    ]
    return shortlist_of(rows, frequent, source, target)


def shortlist_of(
    targets: Sequence[Sequence[int] | np.ndarray],
    frequent: Sequence[int] | np.ndarray,
    source: Tokenizer,
    target: Tokenizer,
) -> Shortlist:
    """The targets of each source token, and those that every sentence may use, to which its end belongs."""
    always = np.union1d(frequent, target.eos_id)
    # Some models begin a sentence with what ends another.
    never = np.setdiff1d((target.pad_id, target.bos_id, target.unk_id), target.eos_id)
    shares = source is target or (
        isinstance(source, VocabularyTokenizer) and source.has_vocabulary_of(target)
    )
    rows = []
    for token, own_targets in enumerate(targets):
        itself = [token] if shares and token not in never else []
        candidates = np.union1d(np.asarray(own_targets, np.int64), np.asarray(itself, np.int64))
        rows.append(np.setdiff1d(candidates, np.union1d(always, never)))
    dtype = np.uint16 if target.vocabulary_size <= 1 << 16 else np.uint32
    return Shortlist(
        first_V=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.uint32),
        target_N=np.concatenate(rows).astype(dtype),
        always=np.setdiff1d(always, never).astype(dtype),
        target_vocabulary=target.vocabulary_size,
    )
