"""The training pairs of a recipe, from its files to the token ids that batches are cut from.

Pairs in files are made ready once for the same files, vocabulary and options: the vocabulary and the token
ids are kept in the corpus cache.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import sentencepiece
from dragoman_bundle.machine import count_processors
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data.cache import CorpusCache
from dragoman_training.data.corpus import CorpusError
from dragoman_training.data.files import Part, parts_of, read_blocks
from dragoman_training.data.store import open_corpus, open_links, write_corpus, write_links
from dragoman_training.data.survey import FileFacts, check_unchanged, read_sample, survey
from dragoman_training.data.token_ids import Learn, TokenIds, TokenizedCorpus, id_type, link_blocks, link_type
from dragoman_training.data.tokenizing import Tokenizing, tokenize_blocks
from dragoman_training.data.vocabulary import Tokenizers, train_tokenizers
from dragoman_training.recipe.settings import Recipe
from dragoman_training.time_left import Say, progress_lines

FEWEST_LINES_FOR_PROCESSES = 100_000


def open_training_pairs(
    recipe: Recipe, folder: Path, cache_folder: Path, report: Say, load_linker: Callable[[], Learn]
) -> "FilePairs":
    """The pairs that a recipe names; relative paths start at `folder`.

    They are made ready in `cache_folder`. Lines for people go to `report`; `load_linker` gives what links
    tokens where attention is guided. Raises CorpusError as `read_corpus` does.
    """
    parts = parts_of(recipe.data, "train", folder)
    cache = CorpusCache(cache_folder, report)
    return FilePairs(parts, survey(parts, cache.surveys), recipe, cache, report, load_linker)


@dataclass(frozen=True)
class FilePairs:
    """The pairs of some files."""

    parts: Sequence[Part]
    facts: dict[Path, FileFacts]
    """What the files held when they were surveyed."""
    recipe: Recipe
    cache: CorpusCache
    report: Say
    load_linker: Callable[[], Learn]

    def learn_vocabulary(self) -> Tokenizers:
        """Source and target tokenizer, learnt from a sample; one object where the vocabulary is shared.

        Raises VocabularyError where the corpus is too small for its size, CorpusError for files that can't be
        used or that change meanwhile, and CorpusCacheError.
        """
        config = self.recipe.vocabulary

        def make(folder: Path) -> None:
            pairs = f"{self._num_lines:,} pairs"
            if self._num_lines > config.max_pairs:
                pairs = f"{config.max_pairs:,} of {pairs}, evenly spread (vocabulary.max_pairs)"
            self.report(f"Training a vocabulary of {config.size:,} on {pairs}.")
            sample = read_sample(self.parts, self.facts, config.max_pairs, self.recipe.filter)
            if not len(sample):
                counted = "sentence pair" if self.recipe.data.has_source else "sentence"
                raise CorpusError(f"data: the train files hold no {counted}")
            source, target = train_tokenizers(sample, config)
            check_unchanged(self.facts)
            (folder / "source.spm").write_bytes(source.model)
            if target is not source:
                (folder / "target.spm").write_bytes(target.model)

        made_of = {**self._identity(), "options": dataclasses.asdict(config)}
        path = self.cache.entry("vocabulary", made_of, make)
        source = Tokenizer.load(path / "source.spm")
        return source, source if config.shared else Tokenizer.load(path / "target.spm")

    def tokenized(self, tokenizers: Tokenizers, *, num_processes: int | None = None) -> TokenizedCorpus:
        """The pairs as token ids on disk, without those that the recipe leaves out.

        Without `num_processes` as many tokenize as there are cores. Raises CorpusError for files that can't
        be used or that change meanwhile, CorpusCacheError where the ids can't be kept or are damaged.
        """
        source, target = tokenizers
        models = (source.model,) if target is source else (source.model, target.model)
        sampling = self.recipe.subword_sampling
        tokenizing = Tokenizing(
            models=models,
            max_tokens=self.recipe.data.max_tokens,
            pair_filter=self.recipe.filter,
            has_texts=sampling.source or sampling.target,
        )
        # Below so many lines processes take longer to begin than to tokenize.
        is_small = self._num_lines < FEWEST_LINES_FOR_PROCESSES
        count = num_processes or (1 if is_small else count_processors())

        def make(folder: Path) -> None:
            where = f"in {count} processes" if count > 1 else "in this process"
            self.report(f"Tokenizing {self._num_lines:,} lines {where}, to be kept in {self.cache.folder}.")
            write_corpus(
                folder,
                tokenize_blocks(chain.from_iterable(map(read_blocks, self.parts)), tokenizing, count),
                num_parts=len(self.parts),
                types=(id_type(source.vocabulary_size), id_type(target.vocabulary_size)),
                has_texts=tokenizing.has_texts,
                leave_out_duplicates=self.recipe.filter.leave_out_duplicates,
                advance=progress_lines(self._num_lines, "Tokenized", "lines", self.report),
            )
            check_unchanged(self.facts)

        made_of = {
            **self._identity(),
            "vocabularies": [hashlib.sha256(model).hexdigest() for model in models],
            "max_tokens": tokenizing.max_tokens,
            "has_texts": tokenizing.has_texts,
        }
        path = self.cache.entry("pairs", made_of, make)
        corpus = open_corpus(path, [part.weight for part in self.parts])
        if self.recipe.guided_alignment.weight and len(corpus):
            corpus = dataclasses.replace(corpus, links=self._links(path, corpus))
        return corpus

    def _links(self, pairs: Path, corpus: TokenizedCorpus) -> TokenIds:
        """Which tokens come from which. Raises ValueError where the aligner's extra is not installed."""
        learn, max_pairs = self.load_linker(), self.recipe.guided_alignment.max_pairs
        dtype = link_type(corpus.sides)

        def make(folder: Path) -> None:
            learnt = f"; that is learnt from {max_pairs:,}, evenly spread (guided_alignment.max_pairs)"
            self.report(
                f"Linking the tokens of {len(corpus):,} training pairs, which attention learns from"
                f"{learnt if len(corpus) > max_pairs else ''}."
            )
            advance = progress_lines(len(corpus), "Linked", "pairs", self.report)
            write_links(folder, link_blocks(corpus.sides, learn, max_pairs), dtype, advance)

        path = self.cache.entry("links", {"pairs": pairs.name, "max_pairs": max_pairs}, make)
        return open_links(path, dtype, len(corpus))

    @property
    def _num_lines(self) -> int:
        return sum(self.facts[part.paths[0]].num_lines for part in self.parts)

    def _identity(self) -> dict[str, Any]:
        """What decides which pairs they are, whatever the files are called."""
        return {
            "parts": [[part.kind, *(self.facts[path].sha256 for path in part.paths)] for part in self.parts],
            "filter": dataclasses.asdict(self.recipe.filter),
            "sentencepiece": sentencepiece.__version__,
        }
