"""What is exported, wherever it is from: graphs and the reference that they are held against, tokenizers, and
what a bundle says of it.

Shapes: S sentences, K beam, R = S·K rows, T source positions, V target vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.search import Ids
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.s2s import write_s2s
from dragoman_export.graphs.transformer import write_transformer
from dragoman_export.reference.imported import Imported, TransformerArchitecture
from dragoman_export.reference.model import Array, Arrays, ReferenceModel
from dragoman_export.reference.s2s import S2SReference
from dragoman_export.reference.transformer import TransformerReference


class ExportedModel(ABC):
    """A model that graphs are made of."""

    reference_name: ClassVar[str]
    """What a card calls the reference."""
    imported: Imported | None
    """What its graphs are written from; None where they are traced."""

    @property
    def is_transformer(self) -> bool:
        """Whether rows of its int8 graphs may share steps that are found on samples."""
        return self.imported is not None and isinstance(self.imported.architecture, TransformerArchitecture)

    @abstractmethod
    def reference(self) -> ReferenceModel:
        """What its graphs are held against."""

    def graphs(self, *, dtype: ir.DataType = ir.DataType.FLOAT, for_cpu: bool = False) -> Graphs:
        """Its graphs, computing in FLOAT or FLOAT16; `for_cpu` with kernels that other devices lack."""
        assert self.imported is not None
        if self.is_transformer:
            return write_transformer(self.imported, dtype=dtype, for_cpu=for_cpu)
        return write_s2s(self.imported, dtype=dtype)


@dataclass(frozen=True)
class ImportedModel(ExportedModel):
    """A model from elsewhere, whose reference is NumPy."""

    imported: Imported
    reference_name = "its equations in NumPy"

    def reference(self) -> ReferenceModel:
        return (TransformerReference if self.is_transformer else S2SReference)(self.imported)


class KeptTo:
    """A reference that says nothing but a sentence's candidates; one row for each sentence."""

    def __init__(self, reference: ReferenceModel, candidates: Sequence[Ids]) -> None:
        self._reference = reference
        self.bos, self.vocabulary_size = reference.bos, reference.vocabulary_size
        self._candidates = candidates
        self.encode = reference.encode
        self.token_scores = reference.token_scores

    def step(self, token_SK: Ids, memory: Arrays, state: Arrays) -> tuple[Array, Array, Arrays]:
        logits_SV, attention, state = self._reference.step(token_SK, memory, state)
        kept_SV = np.full_like(logits_SV, -np.inf)
        for own, kept, logits in zip(self._candidates, kept_SV, logits_SV, strict=True):
            kept[own] = logits[own]
        return kept_SV, attention, state

    def rounded(self) -> "KeptTo":
        return KeptTo(self._reference.rounded(), self._candidates)


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
    """The piece that a source in each language, and a translation to it, begins with; of a model of many
    languages."""
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

    def telling(self, options: str) -> "Subject":
        """The same, its card telling these options of its export as well."""
        return replace(self, training=self.training.replace("{export}", f"{{export}} {options}"))

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
