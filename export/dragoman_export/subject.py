"""What is exported, wherever it is from: a model with its tokenizers, and what its bundle says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

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
    languages: Mapping[str, str] = field(default_factory=dict)
    """Of a model of many languages, the piece that a source in each and a translation to it begins with."""
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

    @property
    def checked_tokenizer(self) -> Tokenizer:
        """The source tokenizer of text that graphs are checked on, which is English of many languages."""
        if not self.languages:
            return self.source_tokenizer
        assert isinstance(self.source_tokenizer, VocabularyTokenizer)
        english = self.languages.get("en") or next(iter(self.languages.values()))
        return self.source_tokenizer.beginning_with(english)

    @property
    def checked_start(self) -> tuple[int, ...]:
        """What translations of such text begin with."""
        last = [*self.languages.values()][-1:]
        return tuple(id_ for piece in last if (id_ := self.target_tokenizer.id_of(piece)) is not None)
