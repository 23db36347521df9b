"""Recipes: everything about a training run, as frozen settings that check themselves."""

import math
from dataclasses import dataclass, field
from typing import Literal

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.errors import check_name

from dragoman_training import checks
from dragoman_training.models import LanguageModelConfig, ModelConfig, PlainConfig, TransformerConfig
from dragoman_training.recipe.data import (
    DataConfig,
    FilterConfig,
    RecipeError,
    SubwordSamplingConfig,
    VocabularyConfig,
)


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
        checks.require_at_least(self, "training", batch_tokens=1, max_epochs=1, warmup_steps=0, patience=0)
        checks.require_at_least(self, "training", threads=0, max_minutes=0, validate_sentences=0, seed=0)
        checks.require_at_least(self, "training", accumulate_batches=1, keep_validated=0)
        checks.require_at_most(self, "training", seed=2**63 - 1, threads=1024, validate_every_epochs=1e6)
        checks.require_share(self, "training", "label_smoothing", "ema_decay", "weight_decay")
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
        checks.require_positive(self, "training", "learning_rate", "clip_norm", "validate_every_epochs")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise ValueError(f"training.adam_betas are {self.adam_betas}, but must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class ScheduledSamplingConfig:
    """How often the decoder reads the reference's token, rather than its own last one, while it trains.

    Off by default: it reads the reference always, which is teacher forcing. Otherwise a coin is tossed for
    each token, and the decoder runs step by step, with an output layer a step: training is slower.
    """

    teacher_forcing: float = 1.0
    """Probability of the reference's token before the first step, where `inverse_sigmoid` begins with
    k/(k + 1) of it; without a `decay` it stays there."""
    decay: Literal["none", "linear", "exponential", "inverse_sigmoid"] = "none"
    """How that probability falls (section 2.4)."""
    pace: float = 1000.0
    """`linear`: steps in which it falls to 0. `exponential`: steps in which it falls by a factor of e.
    `inverse_sigmoid`: the paper's k; half of it is left after k·ln k steps."""
    least: float = 0.0
    """It never falls below this."""
    token: Literal["best", "sampled"] = "best"
    """The model's own token: its likeliest, or one drawn from its distribution."""

    def __post_init__(self) -> None:
        checks.require_at_least(self, "scheduled_sampling", teacher_forcing=0, pace=1, least=0)
        for name in ("teacher_forcing", "least"):
            if getattr(self, name) > 1:
                raise ValueError(f"scheduled_sampling.{name} is {getattr(self, name)}, but must be at most 1")
        if not self.pace < math.inf:
            raise ValueError(f"scheduled_sampling.pace is {self.pace}, but must be finite")
        if self.least > self.teacher_forcing:
            raise ValueError(
                f"scheduled_sampling.least is {self.least}, but must be at most teacher_forcing, "
                f"{self.teacher_forcing}"
            )
        if self.decay == "none":
            because = 'scheduled_sampling.decay is "none", so that the probability does not fall'
            checks.require_default(self, "scheduled_sampling", "pace", "least", because=because)
            if self.teacher_forcing == 1:
                because += " and the reference is read always"
                checks.require_default(self, "scheduled_sampling", "token", because=because)


@dataclass(frozen=True, kw_only=True)
class GuidedAlignmentConfig:
    """Whether attention is taught to look where words come from. Off by default.

    Before the first step an HMM in both directions links the tokens of the training pairs; that needs the
    extra `align`. Taught is a recurrent decoder's attention, and of a Transformer one head of the last layer
    but one.
    """

    weight: float = 0.0
    """Weight of that loss beside the translation's, each a mean over target tokens; 0.05 to 0.3 are usual,
    0 is off."""
    max_pairs: int = 500_000
    """Training pairs that the HMM learns from; of a larger corpus so many, evenly spread."""

    def __post_init__(self) -> None:
        checks.require_at_least(self, "guided_alignment", weight=0, max_pairs=1)


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
        checks.require_at_least(self, "decoding", max_source_tokens=2, max_output_margin=1)


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
        no_source = "model.family is lm, which has no source side"
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
            checks.require_default(self.subword_sampling, "subword_sampling", "source", because=no_source)
        elif not self.data.has_source:
            raise RecipeError(
                'data.source_language: is missing; only a language model (model.family = "lm") has none'
            )
        if not self.data.has_source:
            names = "max_length_ratio", "leave_out_copies"
            checks.require_default(self.filter, "filter", *names, because=no_source)
        if self.guided_alignment.weight:
            self._check_guided()
        if self.vocabulary.model_type == "bpe":
            if self.subword_sampling.alpha > 1:
                raise RecipeError(
                    f"subword_sampling.alpha is {self.subword_sampling.alpha:g}, but with "
                    "vocabulary.model_type bpe it is a probability: from 0 to 1"
                )
            because = "vocabulary.model_type is bpe, whose segmentations have no order of the best"
            checks.require_default(self.subword_sampling, "subword_sampling", "nbest_size", because=because)
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
            family = f'model.family "{self.model.family}"'
            raise RecipeError(f"{guided}, but {family} has no attention to guide; set it to 0")
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
