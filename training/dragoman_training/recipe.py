"""Recipes: TOML files that say everything about a training run.

Owns reading, overriding and checking. A key that no one reads is an error, never ignored.
"""

import dataclasses
import difflib
import math
import tomllib
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dragoman_training.checks import require_at_least, require_share
from dragoman_training.models import ModelConfig

FAMILIES: dict[str, type[ModelConfig]] = {each.family: each for each in typing.get_args(ModelConfig)}


class RecipeError(ValueError):
    """A recipe that can't be used; the message names the key, what is wrong, and the way out."""


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the sentence pairs come from.

    Either line-parallel files (`*_source` and `*_target`), or files of tab-separated pairs (`*_tsv`), or a
    data set of the Hugging Face `datasets` library (`hugging_face`). Files may be gzipped. Paths are relative
    to the recipe.
    """

    source_language: str
    """BCP 47 code of the source language, such as "de"."""
    target_language: str
    """BCP 47 code of the target language, such as "en"."""
    train_source: tuple[str, ...] = ()
    """Source sides of the training pairs, one sentence a line."""
    train_target: tuple[str, ...] = ()
    """Target sides of the training pairs, line by line beside `train_source`."""
    valid_source: tuple[str, ...] = ()
    """Source sides of the validation pairs."""
    valid_target: tuple[str, ...] = ()
    """Target sides of the validation pairs."""
    train_tsv: tuple[str, ...] = ()
    """Files with a source, a tab and a target a line."""
    valid_tsv: tuple[str, ...] = ()
    """The same for validation."""
    hugging_face: str = ""
    """Name or folder of a data set with a `translation` column; its split `validation` is used where no
    validation files are given."""
    hugging_face_config: str = ""
    """Configuration of that data set, such as "de-en", where it has several."""
    max_tokens: int = 100
    """Training pairs with a longer side, in tokens, are left out."""

    def __post_init__(self) -> None:
        require_at_least(self, "data", max_tokens=1)
        kinds = [
            bool(self.train_source or self.train_target),
            bool(self.train_tsv),
            bool(self.hugging_face),
        ]
        if sum(kinds) != 1:
            raise RecipeError(
                "data: give exactly one of train_source and train_target, train_tsv, hugging_face"
            )
        for split in ("train", "valid"):
            sources, targets = getattr(self, f"{split}_source"), getattr(self, f"{split}_target")
            if len(sources) != len(targets):
                raise RecipeError(f"data: {split}_source and {split}_target name different numbers of files")
        if not self.hugging_face and not (self.valid_source or self.valid_tsv):
            raise RecipeError("data: there is nothing to validate on; give valid_source and valid_target")


@dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """Sentencepiece vocabularies, trained on the training pairs."""

    size: int = 8000
    """Pieces in each vocabulary."""
    shared: bool = True
    """Whether source and target use one vocabulary and one embedding."""
    model_type: Literal["unigram", "bpe"] = "unigram"
    """Sentencepiece's algorithm."""
    character_coverage: float = 1.0
    """Share of the corpus' characters that get a piece; lower it for scripts with thousands."""

    def __post_init__(self) -> None:
        require_at_least(self, "vocabulary", size=8)
        if not 0 < self.character_coverage <= 1:
            raise ValueError(
                f"vocabulary.character_coverage is {self.character_coverage}, "
                "but must be above 0 and at most 1"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How the parameters are found."""

    batch_tokens: int = 1800
    """Padded tokens a batch, on either side."""
    max_epochs: int = 20
    """Passes over the corpus."""
    max_minutes: float = 0.0
    """Stops after this many minutes of training, checked at each validation and epoch; 0 for no limit."""
    learning_rate: float = 1.5e-3
    """Peak learning rate of Adam."""
    warmup_steps: int = 400
    """Steps over which the learning rate rises from 0 to its peak."""
    decay: Literal["inverse_sqrt", "linear", "cosine", "constant"] = "inverse_sqrt"
    """How the learning rate falls after warm-up; `linear` and `cosine` reach 0 at the end of `max_epochs`."""
    adam_betas: tuple[float, float] = (0.9, 0.98)
    """Decay of Adam's two moments."""
    clip_norm: float = 1.0
    """Gradients are scaled down to this norm."""
    label_smoothing: float = 0.1
    """Probability taken from the target and spread over the vocabulary."""
    ema_decay: float = 0.999
    """Decay a step of the moving average of the parameters, which is what is validated and kept; 0 is off."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of activations and matrix products; auto is bf16 where the device multiplies in it.
    Parameters and the loss are always fp32."""
    validate_every_epochs: float = 1.0
    """Epochs from one validation to the next."""
    validate_sentences: int = 0
    """Validation pairs used while training, evenly spread over the set; 0 for all."""
    patience: int = 5
    """Validations without a better BLEU after which training stops; 0 never stops early."""
    seed: int = 1
    """Seed of everything random."""
    threads: int = 0
    """CPU threads; 0 leaves PyTorch's choice."""

    def __post_init__(self) -> None:
        require_at_least(
            self, "training", batch_tokens=1, max_epochs=1, warmup_steps=0, patience=0, threads=0
        )
        require_at_least(self, "training", max_minutes=0, validate_sentences=0, seed=0)
        require_share(self, "training", "label_smoothing", "ema_decay")
        for name in ("learning_rate", "clip_norm", "validate_every_epochs"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} is {getattr(self, name)}, but must be above 0")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise ValueError(f"training.adam_betas are {self.adam_betas}, but must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """What a request that sets nothing gets, and how validation decodes."""

    beam_size: int = 5
    """Hypotheses kept a sentence; 1 is greedy."""
    length_penalty: float = 1.0
    """Exponent of the length penalty (Wu et al. 2016, equation 14)."""
    max_source_tokens: int = 100
    """Longest source sentence the model is trusted with."""
    max_output_tokens: int = 256
    """Most tokens of an output, whatever its source."""
    max_output_ratio: float = 2.0
    """Most output tokens a source token."""
    max_output_margin: int = 10
    """Output tokens beyond that ratio."""

    def __post_init__(self) -> None:
        require_at_least(self, "decoding", beam_size=1, max_source_tokens=2, max_output_tokens=1)
        require_at_least(self, "decoding", length_penalty=0, max_output_ratio=0, max_output_margin=1)


@dataclass(frozen=True, kw_only=True)
class CardConfig:
    """What the model card says that numbers don't."""

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
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    """Sentencepiece vocabularies."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """How the parameters are found."""
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    """How sentences are decoded."""
    card: CardConfig = field(default_factory=CardConfig)
    """What the model card says."""


def load_recipe(path: Path, overrides: tuple[str, ...] = ()) -> Recipe:
    """Reads a recipe file and applies `key.subkey=value` overrides, values written as in TOML.

    Raises RecipeError for what is not TOML, for unknown keys (naming the nearest known one), for values of
    the wrong type or out of range; OSError where the file can't be read.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not a TOML file: {error}") from error
    for override in overrides:
        _apply_override(table, override)
    return recipe_from_table(table)


def recipe_from_table(table: dict[str, Any]) -> Recipe:
    """A recipe from nested tables, as TOML or a checkpoint holds it. Raises RecipeError."""
    recipe: Recipe = _build(Recipe, table, where="")
    return recipe


def _apply_override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise RecipeError(f'override "{override}" is not of the form key=value')
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise RecipeError(f'override "{override}": {parent} is not a table')
    table[last] = value


def _build(cls: type[Any], table: object, *, where: str) -> Any:
    """Builds a dataclass from a table; `where` is the dotted key it stands at."""
    if not isinstance(table, dict):
        raise RecipeError(f"{where}: must be a table, not {table!r}")
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key in table:
        if key not in fields:
            raise RecipeError(_unknown(key, list(fields), what="unknown key", where=where))
    values = {key: _convert(hints[key], value, where=_join(where, key)) for key, value in table.items()}
    for name, known in fields.items():
        optional = (
            known.default is not dataclasses.MISSING or known.default_factory is not dataclasses.MISSING
        )
        if name not in values and not optional:
            raise RecipeError(f"{_join(where, name)}: is missing")
    try:
        return cls(**values)
    except RecipeError:
        raise
    except ValueError as error:
        raise RecipeError(str(error)) from error


def _convert(kind: Any, value: object, *, where: str) -> Any:
    """A TOML value as the field's type; raises RecipeError where it is of another."""
    if kind == ModelConfig:
        return _build_model_config(value, where=where)
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(type[Any], kind), value, where=where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value not in arguments:
            raise RecipeError(f"{where}: is {value!r}, but must be one of {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        variadic = arguments[-1] is Ellipsis
        if not variadic and len(items) != len(arguments):
            raise RecipeError(f"{where}: must have {len(arguments)} values, not {len(items)}")
        kinds = [arguments[0]] * len(items) if variadic else arguments
        return tuple(_convert(each, item, where=where) for each, item in zip(kinds, items, strict=True))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RecipeError(f"{where}: is {value!r}, but must be of type {kind.__name__}")
    return value


def _build_model_config(value: object, *, where: str) -> ModelConfig:
    family = value.get("family") if isinstance(value, dict) else None
    if not isinstance(family, str):
        raise RecipeError(f"{where}.family: is missing; known families: {', '.join(FAMILIES)}")
    if family not in FAMILIES:
        raise RecipeError(_unknown(family, list(FAMILIES), what=f"{where}.family"))
    config: ModelConfig = _build(FAMILIES[family], value, where=where)
    return config


def _unknown(name: str, known: list[str], *, what: str, where: str = "") -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f'did you mean "{_join(where, nearest[0])}"?' if nearest else f"known: {', '.join(known)}"
    return f'{what} "{_join(where, name)}"; {hint}'


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
