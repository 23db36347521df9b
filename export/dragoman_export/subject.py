"""What is exported, wherever it is from: a model with its tokenizers, and what its bundle says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_export.model import ExportedModel

NOT_STATED = "not stated"
"""What a card says of what nobody wrote down."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a card says that numbers don't."""

    description: str = ""
    """What the model is good for, and what not."""
    data: str = ""
    """The training data and where it is from."""
    licence: str = ""
    credit: str = ""
    """Credit owed to the makers of the model or its data."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model on its way to a bundle."""

    model: ExportedModel
    sizes: tuple[Mapping[str, Any], ...]
    """Its `family`, and its settings by their names; of an ensemble, each member's."""
    parameters: int
    """How many it has, each counted once."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    """The same object where the vocabulary is shared."""
    source_language: str
    """BCP 47 code."""
    target_language: str
    """BCP 47 code."""
    attention_of_input: bool = False
    """Whether a step's attention aligns the token the step reads, rather than the one it predicts."""
    source_end: bool = True
    """Whether a source ends with the end of its vocabulary, or with its last piece."""
    continues: bool = False
    """Whether it is a language model, whose outputs are how its sources go on."""
    decoding: DecodingDefaults
    card: Card
    training: str
    """What the card says under "Training", in Markdown; `{export}` stands for the options of its export."""
    recipes: tuple[str, ...] = ()
    """How it was trained, in TOML, where that was here; of an ensemble, each member."""
