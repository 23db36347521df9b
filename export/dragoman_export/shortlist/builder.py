"""A bundle's lexical shortlist, from the corpus its model was trained on or any other text in two languages.

The table is IBM model 1's, or of the links of a saved aligner.
"""

import numpy as np
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_export.options import Report, ShortlistOptions
from dragoman_export.shortlist.lexicon import make_shortlist
from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.pieces import count_links, learn_table
from dragoman_training.data.corpus import Corpus, spread
from dragoman_training.data.training_corpus import TrainingCorpusError, token_pairs

MAX_PAIRS = 500_000
"""Sentence pairs of other text than the training corpus that the table is learnt from."""


def learn_shortlist(
    corpus: Corpus,
    source: Tokenizer,
    target: Tokenizer,
    options: ShortlistOptions,
    report: Report,
    *,
    max_tokens: int,
    max_pairs: int,
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
