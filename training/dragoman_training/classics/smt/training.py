"""The training of a system: words linked, phrases extracted, a language model."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_training.alignment.bitext import Bitext, Vocabulary, WordPair
from dragoman_training.alignment.links import Matrix, Method
from dragoman_training.alignment.text import WordRule
from dragoman_training.alignment.training import TrainingOptions, train_aligner, usable_pairs
from dragoman_training.classics.smt.decoder import SearchOptions, Weights
from dragoman_training.classics.smt.language_model import estimate
from dragoman_training.classics.smt.phrases import learn_phrases
from dragoman_training.classics.smt.system import Casing, System, split_words

MAX_STORED_OPTIONS = 50
"""Translations of a source phrase that are saved."""
BLOCK_PAIRS = 10_000
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class SystemOptions:
    """How a system is trained."""

    aligner: str = "hmm"
    """The last model of the chain that links the words."""
    symmetrize: Method = "grow-diag-final-and"
    """How the links of both directions become one alignment."""
    max_phrase_words: int = 7
    """Words of a phrase, on either side; 1 makes a word-based system."""
    order: int = 4
    """Words of the language model's n-grams."""
    min_counts: Sequence[int] = (1, 1, 1)
    """How often an n-gram of 1, 2, … words occurs at least."""
    max_words: int = 100
    """A pair with a longer sentence is not learnt from."""
    search: SearchOptions = SearchOptions()  # noqa: RUF009


def train_system(
    lines: Sequence[tuple[str, str]],
    options: SystemOptions,
    *,
    more_target: Sequence[str] = (),
    say: Say = lambda line: None,
) -> System:
    """A system with weights that are not tuned yet. `more_target` is text for the language model alone.

    Raises ValueError where there is nothing to learn from.
    """
    began = time.monotonic()

    def tell(line: str) -> None:
        say(f"{line}; {time.monotonic() - began:.0f} s")

    split = [(split_words(one), split_words(other)) for one, other in lines]
    casing = Casing.of(one for one, _ in split)
    target_casing = Casing.of(other for _, other in split)
    cased = [(casing.within(one), target_casing.within(other)) for one, other in split]
    usable = usable_pairs(cased, options.max_words)
    more = [target_casing.within(words) for words in map(split_words, more_target) if words]
    links = _link(usable, options, tell)
    source = Vocabulary.of(one for one, _ in usable)
    target = Vocabulary.of([*(other for _, other in usable), *more])
    bitext = Bitext(
        *(side.numbered(text) for side, text in zip((source, target), zip(*usable, strict=True), strict=True))
    )
    table = learn_phrases(bitext, links, max_words=options.max_phrase_words, max_options=MAX_STORED_OPTIONS)
    tell(f"{len(table):,} phrase pairs")
    text = [[target.number(word) for word in words] for words in [*(other for _, other in usable), *more]]
    model = estimate(text, len(target.words), order=options.order, min_counts=options.min_counts)
    tell(f"{len(model.word_T):,} n-grams of up to {options.order} words")
    return System(
        source=source,
        target=target,
        source_casing=casing,
        table=table,
        language_model=model,
        weights=Weights(),
        search=options.search,
    )


def _link(pairs: Sequence[WordPair], options: SystemOptions, tell: Say) -> list[Matrix]:
    """The links of the words, without regard to case."""
    lowered = [([word.lower() for word in one], [word.lower() for word in other]) for one, other in pairs]

    aligner = train_aligner(
        lowered, TrainingOptions(model=options.aligner), WordRule(), lambda iteration: tell(str(iteration))
    )
    links: list[Matrix] = []
    for first in range(0, len(lowered), BLOCK_PAIRS):
        links += aligner.align(lowered[first : first + BLOCK_PAIRS], options.symmetrize)
    return links
