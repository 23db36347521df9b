"""What is exported, wherever it is from: a model with its tokenizers, and what its bundle says of it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_export.card.training_text import training_text
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.decoding.members import as_one, decoding_of
from dragoman_training.models import LanguageModelConfig, ModelConfig, Seq2Seq
from dragoman_training.provenance import provenances
from dragoman_training.recipe.settings import CardConfig, DecodingConfig, Recipe

NOT_STATED = "not stated"
"""What a card says of what nobody wrote down."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model on its way to a bundle."""

    model: Seq2Seq
    """In evaluation mode."""
    configs: tuple[ModelConfig, ...]
    """Its family and sizes; of an ensemble, each member's."""
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
    decoding: DecodingConfig
    """Decoding defaults."""
    card: CardConfig
    """What the card says that numbers don't."""
    training: str
    """What the card says under "Training", in Markdown; `{export}` stands for the options of its export."""
    recipes: tuple[Recipe, ...]
    """How it was trained, where that was here; of an ensemble, each member."""

    @property
    def continues(self) -> bool:
        """Whether it is a language model, whose outputs are how its sources go on."""
        return isinstance(self.configs[0], LanguageModelConfig)


def subject_of(members: Sequence[Checkpoint]) -> Subject:
    """A checkpoint, or several as an ensemble, as what is exported.

    An ensemble is decoded and described by the recipe of its first member, but owes what each of them owes. A
    language model goes on in the language that it is given.
    """
    first = members[0]
    return Subject(
        model=as_one(members),
        configs=tuple(member.recipe.model for member in members),
        parameters=sum(parameter.numel() for member in members for parameter in member.model.parameters()),
        source_tokenizer=first.source_tokenizer,
        target_tokenizer=first.target_tokenizer,
        source_language=first.recipe.data.source_language or first.recipe.data.target_language,
        target_language=first.recipe.data.target_language,
        decoding=decoding_of(members),
        card=_card_of(members),
        training=training_text(members),
        recipes=tuple(member.recipe for member in members),
    )


def _card_of(members: Sequence[Checkpoint]) -> CardConfig:
    """The first one's, with the data, licences and credits of everybody and of what they were begun with."""
    owed = [provenance for member in members for provenance in provenances(member.recipe, member.progress)]
    everything = {
        key: "; ".join(dict.fromkeys(getattr(provenance, key) or NOT_STATED for provenance in owed))
        for key in ("data", "licence", "credit")
    }
    stated = {key: "" if value == NOT_STATED else value for key, value in everything.items()}
    return dataclasses.replace(members[0].recipe.card, **stated)
