"""A bundle's lexical shortlist, from the corpus its model was trained on or any other text in two languages.

Owns how large it is. The table is IBM model 1's, or of the links of a saved aligner; the bundle package owns
the file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.pieces import TranslationTable, count_links, learn_table
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.training_corpus import TrainingCorpusError, token_pairs
from dragoman_training.run.validation import spread

MAX_PAIRS = 500_000
"""Sentence pairs that the table is learnt from, unless someone says another number."""


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


def build_shortlist(
    checkpoint: Checkpoint,
    corpus: Corpus,
    options: ShortlistOptions,
    report: Callable[[str], None],
    aligner: Aligner | None = None,
) -> Shortlist:
    """As `learn_shortlist`, from the pairs that the checkpoint was trained on."""
    return learn_shortlist(
        corpus,
        checkpoint.source_tokenizer,
        checkpoint.target_tokenizer,
        options,
        report,
        max_tokens=checkpoint.recipe.data.max_tokens,
        max_pairs=len(corpus),
        aligner=aligner,
    )


def learn_shortlist(
    corpus: Corpus,
    source: Tokenizer,
    target: Tokenizer,
    options: ShortlistOptions,
    report: Callable[[str], None],
    *,
    max_tokens: int,
    max_pairs: int = MAX_PAIRS,
    aligner: Aligner | None = None,
) -> Shortlist:
    """Learns a table from the corpus and keeps of it what the options say.

    The table is that of the words that an aligner links in the corpus, or without one IBM model 1's of the
    tokens themselves. Of a corpus of more than `max_pairs` so many are learnt from, evenly spread, without
    those with a side of more than `max_tokens`. `report` is told, line by line, what is being done and found.
    Raises TrainingCorpusError where no pair is left, and ValueError for an aligner of the other direction.
    """
    used = spread(corpus, max_pairs)
    pairs = token_pairs(used, source, target, max_pairs=max_pairs, max_tokens=max_tokens)
    if not pairs:
        raise TrainingCorpusError(f"no sentence pair has {max_tokens} tokens or fewer; use --no-shortlist")
    if aligner is None:
        report(f"shortlist: learning from {len(pairs):,} sentence pairs")
        table = learn_table(
            pairs,
            source_vocabulary=source.vocabulary_size,
            report=lambda iteration: report(
                f"shortlist: iteration {iteration.number} of {iteration.num_iterations}, "
                f"perplexity {iteration.perplexity[0]:.2f}"
            ),
        )
    else:
        report(f"shortlist: linking the words of {len(used):,} sentence pairs by {aligner.name}")
        table = count_links(
            aligner,
            used,
            source,
            target,
            max_tokens=max_tokens,
            report=lambda number: report(f"shortlist: {number:,} of {len(used):,} pairs linked"),
        )
    count = np.bincount(np.concatenate([np.asarray(tokens) for _, tokens in pairs]))
    shortlist = make_shortlist(table, count, source, target, options)
    some = [tokens for tokens, _ in pairs[:: len(pairs) // 1000 + 1]]
    mean = np.mean([len(candidates) for candidates in shortlist.candidates(some)])
    report(f"shortlist: {len(shortlist.target_N):,} entries; {mean:.0f} candidates a training sentence")
    return shortlist


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
