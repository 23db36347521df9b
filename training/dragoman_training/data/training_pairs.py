"""The training pairs of a recipe, from its files to the token ids that batches are cut from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data.cache import CorpusCache
from dragoman_training.data.corpus import Corpus, evenly_spaced, read_corpus
from dragoman_training.data.file_pairs import FilePairs, show_linking, show_sample
from dragoman_training.data.parts import parts_of
from dragoman_training.data.sample import filtered
from dragoman_training.data.survey import survey
from dragoman_training.data.tokenized_corpus import TokenizedCorpus, tokenize
from dragoman_training.data.vocabulary import train_tokenizers

if TYPE_CHECKING:
    from dragoman_training.recipe.settings import Recipe


class TrainingPairs(Protocol):
    """Pairs that a vocabulary is learnt from, and that are then tokenized with it."""

    def learn_vocabulary(self) -> tuple[Tokenizer, Tokenizer]:
        """Source and target tokenizer; the same object where the vocabulary is shared.

        Raises VocabularyError where the corpus is too small for the vocabulary's size.
        """

    def tokenized(self, tokenizers: tuple[Tokenizer, Tokenizer]) -> TokenizedCorpus:
        """The pairs as token ids, without those that the recipe leaves out."""


def open_training_pairs(
    recipe: "Recipe", folder: Path, cache_folder: Path, report: Callable[[str], None]
) -> TrainingPairs:
    """The pairs that a recipe names; relative paths start at `folder`.

    Those of files are made ready in `cache_folder`; those of a data set of the Hugging Face library are held
    in memory. `report` is told what is done. Raises CorpusError as `read_corpus` does.
    """
    parts = parts_of(recipe.data, folder)
    if parts is None:
        return MemoryPairs(corpus=read_corpus(recipe.data, "train", folder), recipe=recipe, report=report)
    cache = CorpusCache(cache_folder, report)
    return FilePairs(
        parts=parts, facts=survey(parts, cache.surveys), recipe=recipe, cache=cache, report=report
    )


@dataclass(frozen=True, kw_only=True)
class MemoryPairs:
    """Pairs that are no lines of files."""

    corpus: Corpus
    recipe: "Recipe"
    report: Callable[[str], None]

    def learn_vocabulary(self) -> tuple[Tokenizer, Tokenizer]:
        """As `TrainingPairs` says."""
        config, count = self.recipe.vocabulary, len(self.corpus)
        self.report(show_sample(config, count))
        numbers = evenly_spaced(count, config.max_pairs)
        sample = Corpus(
            [self.corpus.sources[number] for number in numbers],
            [self.corpus.targets[number] for number in numbers],
        )
        return train_tokenizers(filtered(sample, self.recipe.filter), config)

    def tokenized(self, tokenizers: tuple[Tokenizer, Tokenizer]) -> TokenizedCorpus:
        """As `TrainingPairs` says."""
        self.report("Tokenizing.")
        max_tokens, pair_filter = self.recipe.data.max_tokens, self.recipe.filter
        if self.recipe.guided_alignment.weight:
            self.report(show_linking(len(self.corpus), self.recipe.guided_alignment.max_pairs))
        return tokenize(self.corpus, tokenizers, max_tokens=max_tokens, pair_filter=pair_filter)
