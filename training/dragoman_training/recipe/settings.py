"""Recipes: everything about a training run, as frozen settings that check themselves."""

from dataclasses import dataclass, field
from typing import Literal

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.names import check_language, check_name
from dragoman_bundle.tags import FIRST_TAG, LAST_TAG

from dragoman_training.checks import (
    require_at_least,
    require_at_most,
    require_default,
    require_positive,
    require_share,
)
from dragoman_training.data.pair_filter import FilterConfig
from dragoman_training.data.subword_sampling import SubwordSamplingConfig
from dragoman_training.models import LanguageModelConfig, ModelConfig, PlainConfig, TransformerConfig
from dragoman_training.run.guided_alignment import GuidedAlignmentConfig
from dragoman_training.run.scheduled_sampling import ScheduledSamplingConfig

MAX_WEIGHT = 1000
"""How often a pair comes in an epoch, at most."""


class RecipeError(ValueError):
    """A recipe that can't be used; the message names the key, what is wrong, and the way out."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the sentence pairs come from.

    Either line-parallel files (`*_source` and `*_target`), or files of tab-separated pairs (`*_tsv`), or a
    data set of the Hugging Face `datasets` library (`hugging_face`). Files may be gzipped. Paths are relative
    to the recipe. A language model has no source side: only `target_language`, `train_target` and
    `valid_target`.
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
    hugging_face: str = ""
    """Name or folder of a data set with a `translation` column; its split `validation` is used where no
    validation files are given."""
    hugging_face_config: str = ""
    """Configuration of that data set, such as "de-en", where it has several."""
    max_tokens: int = 100
    """Training pairs with a longer side, in tokens, are left out."""

    def __post_init__(self) -> None:
        require_at_least(self, "data", max_tokens=1)
        for key in ("source_language", "target_language") if self.has_source else ("target_language",):
            check_language(f"data.{key}", getattr(self, key))
        has_sources = self.train_source or self.train_tsv or self.valid_source or self.valid_tsv
        if not self.has_source and (has_sources or self.hugging_face):
            raise RecipeError("data.source_language: is missing, though there are source sides to train on")
        kinds = [
            bool(self.train_source or self.train_target),
            bool(self.train_tsv),
            bool(self.hugging_face),
        ]
        if sum(kinds) != 1:
            raise RecipeError(
                "data: give exactly one of train_source and train_target, train_tsv, hugging_face"
            )
        self._check_weights()
        if not self.hugging_face:
            require_default(self, "data", "hugging_face_config", because="data.hugging_face is not given")
        for split in ("train", "valid"):
            sources, targets = getattr(self, f"{split}_source"), getattr(self, f"{split}_target")
            if self.has_source and len(sources) != len(targets):
                raise RecipeError(f"data: {split}_source and {split}_target name different numbers of files")
        if not self.hugging_face and not (self.valid_target or self.valid_tsv):
            wanted = "valid_target"
            if self.has_source:
                wanted = "valid_tsv" if self.train_tsv else "valid_source and valid_target"
            raise RecipeError(f"data: there is nothing to validate on; give {wanted}")

    def _check_weights(self) -> None:
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
                raise RecipeError(
                    f"vocabulary.tags has {tag!r}, but each is one character from U+E000 to U+E00F"
                )
        require_at_least(self, "vocabulary", size=8, max_pairs=1, character_coverage=0.98)
        require_at_most(self, "vocabulary", size=1_000_000, character_coverage=1)


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How the parameters are found."""

    batch_tokens: int = 1800
    """Padded tokens per batch, on either side."""
    accumulate_batches: int = 1
    """Batches whose gradients make one step, in each process; the numbers are those of one batch with all
    their pairs."""
    max_epochs: int = 20
    """Passes over the corpus."""
    max_minutes: float = 0.0
    """Stops after the step at which training has taken this many minutes; 0 for no limit. With `linear` or
    `cosine` the rate then does not reach 0: lower `max_epochs` instead."""
    learning_rate: float = 1.5e-3
    """Peak learning rate."""
    warmup_steps: int = 400
    """Steps over which the learning rate rises from 0 to its peak; `inverse_sqrt` needs some."""
    decay: Literal["inverse_sqrt", "linear", "cosine", "constant"] = "inverse_sqrt"
    """How the learning rate falls after warm-up; `linear` and `cosine` reach 0 at the end of `max_epochs`."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam (Kingma and Ba 2015), or with decoupled weight decay AdamW (Loshchilov and Hutter 2019)."""
    weight_decay: float = 0.0
    """AdamW's decay per step, times the learning rate. Only weight matrices decay: biases, gains of norms,
    embeddings (and with them the tied output layer) and learned positions do not."""
    adam_betas: tuple[float, float] = (0.9, 0.98)
    """Decay of Adam's two moments."""
    clip_norm: float = 1.0
    """Gradients are scaled down to this norm."""
    label_smoothing: float = 0.1
    """Probability taken from the target and spread over the vocabulary."""
    ema_decay: float = 0.999
    """Decay per step of the moving average of the parameters, which is what is validated and kept; 0 is
    off."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Precision of activations and matrix products; auto is bf16 where that is faster: on GPUs that
    multiply in it, on CPUs with AMX, and on AMD's with bf16 in AVX-512. fp16 scales the loss and needs a
    CUDA device. Parameters and the loss are always fp32."""
    validate_every_epochs: float = 1.0
    """Epochs from one validation to the next."""
    validate_sentences: int = 0
    """Validation pairs used while training, evenly spread over the set; 0 for all."""
    early_stopping: Literal["bleu", "loss"] = "bleu"
    """What makes a validation better, and its model the one kept: a higher BLEU, or a lower loss. Where BLEU
    says nothing, below 1 or between equals, the lower loss does."""
    patience: int = 5
    """Validations without a better one after which training stops; 0 never stops early."""
    keep_validated: int = 0
    """Models of that many last validations kept as `step-STEP.safetensors`, for `dragoman average`."""
    start_from: str = ""
    """A checkpoint to begin with, to adapt its model to other text: its vocabulary and parameters. Relative
    to the recipe, which has the same `[model]` and `[vocabulary]`, but for dropout."""
    seed: int = 1
    """Seed of everything random."""
    threads: int = 0
    """CPU threads; 0 leaves PyTorch's choice."""

    def __post_init__(self) -> None:
        require_at_least(
            self, "training", batch_tokens=1, max_epochs=1, warmup_steps=0, patience=0, threads=0
        )
        require_at_least(self, "training", max_minutes=0, validate_sentences=0, seed=0)
        require_at_least(self, "training", accumulate_batches=1, keep_validated=0)
        require_at_most(self, "training", seed=2**63 - 1, threads=1024, validate_every_epochs=1e6)
        require_share(self, "training", "label_smoothing", "ema_decay", "weight_decay")
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError(
                f"training.weight_decay is {self.weight_decay}, but Adam has none: "
                'set training.optimizer = "adamw"'
            )
        if self.warmup_steps == 0 and self.decay == "inverse_sqrt":
            raise ValueError(
                "training.warmup_steps is 0, but training.decay is inverse_sqrt, which falls from the end of "
                "warm-up on and so would be near 0 at once; warm up for some hundred steps, or set "
                'training.decay = "linear"'
            )
        require_positive(self, "training", "learning_rate", "clip_norm", "validate_every_epochs")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise ValueError(f"training.adam_betas are {self.adam_betas}, but must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class DecodingConfig(DecodingDefaults):
    """What a request that sets nothing gets, and how validation decodes."""

    beam_size: int = 5
    """Hypotheses kept per sentence; 1 is greedy."""
    length_penalty: float = 1.0
    """Exponent of the length penalty (Wu et al. 2016, equation 14)."""
    max_source_tokens: int = 100
    """Longest source sentence the model is trusted with."""
    max_output_tokens: int = 256
    """Most tokens of an output, whatever its source."""
    max_output_ratio: float = 2.0
    """Most output tokens per source token."""
    max_output_margin: int = 10
    """Output tokens beyond that ratio."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, "decoding", max_source_tokens=2, max_output_margin=1)


@dataclass(frozen=True, kw_only=True)
class CardConfig:
    """What the model card says that numbers don't.

    Of other data it does not hold: where `--set` names other training files, only what `--set` says here
    counts.
    """

    description: str = ""
    """What the model is good for, and what not."""
    data: str = ""
    """The training data and where it is from."""
    licence: str = ""
    """Licence of the trained model."""
    credit: str = ""
    """Credit owed to the makers of the data."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole training run."""

    name: str
    """Name of the run; checkpoints go to `runs/NAME` unless told otherwise."""
    data: DataConfig
    """Where the sentence pairs come from."""
    model: ModelConfig
    """Family and sizes."""
    filter: FilterConfig = field(default_factory=FilterConfig)
    """Which training pairs are left out."""
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    """Sentencepiece vocabularies."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """How the parameters are found."""
    scheduled_sampling: ScheduledSamplingConfig = field(default_factory=ScheduledSamplingConfig)
    """How often the decoder reads its own tokens while it trains."""
    subword_sampling: SubwordSamplingConfig = field(default_factory=SubwordSamplingConfig)
    """Whether sentences are segmented anew each epoch."""
    guided_alignment: GuidedAlignmentConfig = field(default_factory=GuidedAlignmentConfig)
    """Whether attention learns from an aligner."""
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    """How sentences are decoded."""
    card: CardConfig = field(default_factory=CardConfig)
    """What the model card says."""

    def __post_init__(self) -> None:
        check_name("name", self.name)
        if isinstance(self.model, LanguageModelConfig):
            if self.data.has_source:
                raise RecipeError(
                    "model.family is lm, which translates nothing, but data.source_language is "
                    f'"{self.data.source_language}"; leave it and all source sides out'
                )
            if self.training.early_stopping == "bleu":
                raise RecipeError(
                    "training.early_stopping is bleu, but a language model has no BLEU; "
                    'set training.early_stopping = "loss"'
                )
            if not self.vocabulary.shared:
                raise RecipeError(
                    "vocabulary.shared is false, but a language model has one side and one vocabulary; "
                    "leave it out"
                )
            require_default(
                self.subword_sampling,
                "subword_sampling",
                "source",
                because="model.family is lm, which has no source side",
            )
        elif not self.data.has_source:
            raise RecipeError(
                'data.source_language: is missing; only a language model (model.family = "lm") has none'
            )
        if not self.data.has_source:
            require_default(
                self.filter,
                "filter",
                *("max_length_ratio", "leave_out_copies"),
                because="model.family is lm, which has no source side",
            )
        if self.guided_alignment.weight:
            self._check_guided()
        if self.vocabulary.model_type == "bpe" and self.subword_sampling.alpha > 1:
            raise RecipeError(
                f"subword_sampling.alpha is {self.subword_sampling.alpha:g}, but with vocabulary.model_type "
                "bpe it is a probability: from 0 to 1"
            )
        if self.vocabulary.model_type == "bpe":
            because = "vocabulary.model_type is bpe, whose segmentations have no order of the best"
            require_default(self.subword_sampling, "subword_sampling", "nbest_size", because=because)
        if isinstance(self.model, TransformerConfig):
            # A source has its end besides, a target its beginning.
            for key, longest in (
                ("data.max_tokens", self.data.max_tokens + 1),
                ("decoding.max_source_tokens", self.decoding.max_source_tokens),
                ("decoding.max_output_tokens", self.decoding.max_output_tokens),
            ):
                if longest > self.model.max_positions:
                    raise RecipeError(
                        f"model.max_positions is {self.model.max_positions}, but {key} makes sentences of "
                        f"{longest} positions; raise the one or lower the other"
                    )

    def _check_guided(self) -> None:
        guided = f"guided_alignment.weight is {self.guided_alignment.weight:g}"
        if isinstance(self.model, LanguageModelConfig | PlainConfig):
            raise RecipeError(
                f'{guided}, but model.family "{self.model.family}" has no attention to guide; set it to 0'
            )
        if self.subword_sampling.source or self.subword_sampling.target:
            raise RecipeError(
                f"{guided}, but subword_sampling segments sentences anew each epoch, and links are of one "
                "segmentation; leave one of them out"
            )
        if self.scheduled_sampling.teacher_forcing < 1 or self.scheduled_sampling.decay != "none":
            raise RecipeError(
                f"{guided}, but scheduled_sampling has the decoder read tokens that no link is of; leave one "
                "of them out"
            )
