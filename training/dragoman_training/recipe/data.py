"""What a recipe says of its data: pairs, which of them are left out, vocabularies and sampled segmentations.

Needs no PyTorch: processes that only tokenize read it too.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dragoman_bundle.errors import check_language
from dragoman_bundle.languages import primary_language
from dragoman_bundle.tokenizers.tokenizer import FIRST_TAG, LAST_TAG

from dragoman_training.checks import require_at_least, require_at_most, require_default

MAX_WEIGHT = 1000
"""How often a pair comes in an epoch, at most."""


class RecipeError(ValueError):
    """A recipe that can't be used; the message names the key, what is wrong, and the way out."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the sentence pairs come from.

    Either line-parallel files (`*_source` and `*_target`) or files of tab-separated pairs (`*_tsv`), which
    may be gzipped. Paths are relative to the recipe. A language model has no source side: only
    `target_language`, `train_target` and `valid_target`.
    """

    source_language: str = ""
    """BCP 47 code of the source language, such as "de"; left out for a language model alone."""
    target_language: str
    """BCP 47 code of the target language, such as "en"."""
    train_source: tuple[str, ...] = ()
    """Source sides of the training pairs, one sentence per line."""
    train_target: tuple[str, ...] = ()
    """Target sides of the training pairs, line by line beside `train_source`."""
    valid_source: tuple[str, ...] = ()
    """Source sides of the validation pairs."""
    valid_target: tuple[str, ...] = ()
    """Target sides of the validation pairs."""
    train_tsv: tuple[str, ...] = ()
    """Files with a source, a tab and a target per line."""
    valid_tsv: tuple[str, ...] = ()
    """The same for validation."""
    train_weights: tuple[float, ...] = ()
    """How often the pairs of each of these files come in an epoch, on average: 2 is twice, 0.3 a share of
    them, drawn anew each time; once where nothing is said."""
    max_tokens: int = 100
    """Training pairs with a longer side, in tokens, are left out."""

    def __post_init__(self) -> None:
        require_at_least(self, "data", max_tokens=1)
        for key in ("source_language", "target_language") if self.has_source else ("target_language",):
            check_language(f"data.{key}", getattr(self, key))
        has_sources = self.train_source or self.train_tsv or self.valid_source or self.valid_tsv
        if not self.has_source and has_sources:
            raise RecipeError("data.source_language: is missing, though there are source sides to train on")
        if bool(self.train_source or self.train_target) == bool(self.train_tsv):
            raise RecipeError("data: give either train_source and train_target, or train_tsv")
        files = self.train_tsv or self.train_target
        if self.train_weights and len(self.train_weights) != len(files):
            raise RecipeError(
                f"data.train_weights has {len(self.train_weights)} numbers, but there are {len(files)} "
                "training files of a side: give one for each"
            )
        for weight in self.train_weights:
            if not 0 < weight <= MAX_WEIGHT:
                raise RecipeError(
                    f"data.train_weights has {weight:g}, but each must be above 0 and at most {MAX_WEIGHT}"
                )
        for split in ("train", "valid"):
            sources, targets = getattr(self, f"{split}_source"), getattr(self, f"{split}_target")
            if self.has_source and len(sources) != len(targets):
                raise RecipeError(f"data: {split}_source and {split}_target name different numbers of files")
        if not (self.valid_target or self.valid_tsv):
            wanted = "valid_target"
            if self.has_source:
                wanted = "valid_tsv" if self.train_tsv else "valid_source and valid_target"
            raise RecipeError(f"data: there is nothing to validate on; give {wanted}")

    @property
    def has_source(self) -> bool:
        """Whether there are pairs to translate, rather than a language model's text."""
        return bool(self.source_language)

    @property
    def direction(self) -> str:
        """What is translated to what, for people to read."""
        return f'"{self.source_language}" to "{self.target_language}"'


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """Sentencepiece vocabularies, trained on the training pairs."""

    size: int = 8000
    """Pieces in each vocabulary."""
    max_pairs: int = 500_000
    """Training pairs that it is trained on; of a larger corpus so many, evenly spread."""
    shared: bool = True
    """Whether source and target use one vocabulary and one embedding."""
    model_type: Literal["unigram", "bpe"] = "unigram"
    """Sentencepiece's algorithm."""
    character_coverage: float = 1.0
    """Share of the corpus' characters that get a piece, 0.98 or more; lower it for scripts with thousands."""
    normalization: Literal["nmt_nfkc", "identity"] = "nmt_nfkc"
    """Sentencepiece's rule for both sides. `nmt_nfkc` writes like characters alike: full-width letters and
    punctuation at half width, "²" as "2", "½" as "1⁄2", and so no model writes them otherwise. `identity`
    keeps them apart, as Chinese and Japanese want it."""
    tags: tuple[str, ...] = ()
    """Characters from U+E000 to U+E00F, each of which is a piece of its own. A source that begins with one
    and a space is marked by it: U+E000 as formal, U+E001 as informal, U+E002 as translated by a machine."""

    def __post_init__(self) -> None:
        for tag in self.tags:
            if len(tag) != 1 or not FIRST_TAG <= tag <= LAST_TAG:
                limits = "each is one character from U+E000 to U+E00F"
                raise RecipeError(f"vocabulary.tags has {tag!r}, but {limits}")
        require_at_least(self, "vocabulary", size=8, max_pairs=1, character_coverage=0.98)
        require_at_most(self, "vocabulary", size=1_000_000, character_coverage=1)


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Which training pairs are left out, beside those with an empty side and those of `data.max_tokens`.

    How many, and why, is said before the first step, and kept in the checkpoint. Validation pairs stay.
    """

    max_characters: int = 0
    """Pairs with a side of more characters are left out; 0 for no limit."""
    max_length_ratio: float = 0.0
    """Pairs of which one side has more than that many times the other's characters are left out, unless
    both have 20 or fewer; 0 for no limit."""
    leave_out_copies: bool = False
    """Whether pairs are left out that have the same text on both sides, letters' case aside."""
    leave_out_duplicates: bool = False
    """Whether of equal pairs all but the first are left out, in whichever files they are."""
    source_language: str = ""
    """Pairs whose source side clearly is in another language than this are left out, such as "de"; none for
    "". It takes a core a second for some 4,000 pairs."""
    target_language: str = ""
    """The same of the target side."""

    def __post_init__(self) -> None:
        require_at_least(self, "filter", max_characters=0, max_length_ratio=0)
        if 0 < self.max_length_ratio < 1:
            raise ValueError(
                f"filter.max_length_ratio is {self.max_length_ratio:g}, but the longer side has at least "
                "as many characters as the shorter: it must be at least 1, or 0 for no limit"
            )
        for name in ("source_language", "target_language"):
            language = getattr(self, name)
            if not language:
                continue
            known = sorted(known for known, _ in rank_languages("a"))
            if primary_language(language) not in known:
                raise ValueError(
                    f'filter.{name} is "{language}", which py3langid does not tell; it tells '
                    f"{', '.join(known)}"
                )


def rank_languages(text: str) -> Sequence[tuple[str, float]]:
    """Languages with logarithms of how likely the text is in each, the likeliest first, by py3langid."""
    ranked: Sequence[tuple[str, float]] = _identifier().rank(text)
    return ranked


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


@dataclass(frozen=True, kw_only=True)
class SubwordSamplingConfig:
    """Which sides of the training pairs are segmented anew each epoch. Validation never is.

    With a unigram vocabulary this is subword regularisation (Kudo 2018, section 3); with a BPE one it is
    BPE-dropout (Provilkov et al. 2020). Sampled segmentations are longer, so an epoch has more batches; one
    longer than `data.max_tokens` gives way to the best one.
    """

    source: bool = False
    """Whether the source side is sampled."""
    target: bool = False
    """Whether the target side is sampled."""
    alpha: float = 0.2
    """Unigram: the power that a segmentation's probability is raised to; 0 makes all equal, a large one keeps
    the best. BPE: the probability of leaving a merge out."""
    nbest_size: int = -1
    """Unigram: how many of the best segmentations are drawn from; -1 draws from all."""

    def __post_init__(self) -> None:
        require_at_least(self, "subword_sampling", alpha=0)
        require_at_most(self, "subword_sampling", alpha=1e6)
        if (size := self.nbest_size) != -1 and not 2 <= size <= 512:
            raise ValueError(
                f"subword_sampling.nbest_size is {size}, but must be from 2 to 512, or -1 for all"
            )
        if not (self.source or self.target):
            because = "neither subword_sampling.source nor subword_sampling.target is true"
            require_default(self, "subword_sampling", "alpha", "nbest_size", because=because)
