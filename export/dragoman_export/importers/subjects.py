"""A model from elsewhere as what is exported: its weights by our names, and what its card says of it.

Must not know how its files are read. Shapes: V vocabulary, L positions, D width.
"""

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.graphs.step_end import searchable_size
from dragoman_export.importers.files import FormatError
from dragoman_export.model import Card, ImportedModel, Subject
from dragoman_export.reference.imported import Floats, Imported, Name

MAX_TOKENS = 512
"""Most tokens of a sentence, where the model has positions for more: none are trained on longer ones."""
BEAM_SIZE = 4
"""Where the files do not say."""
_NO_SIZES = {"alignment_head", "barred", "bos", "embedding_scale", "never_produced", "norm_epsilon"}
"""Settings of an architecture that a card does not tell."""
MAX_OUTPUT_RATIO, MAX_OUTPUT_MARGIN = 3.0, 30
"""No model from elsewhere has such a limit of its own; this one only ends what has gone astray."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a model is from, as its card says it."""

    name: str
    """What the model is called there."""
    kind: str
    """What it is, with its article."""
    version: str = ""
    options: str = ""
    """Options of `dragoman get` that read it again, with a space before each."""
    data: str = "see where it comes from"
    """Where its training data are told of."""
    licence: str = ""
    program: str
    """What decodes it there."""
    differences: str
    """How that searches otherwise, as a list in Markdown."""

    def training(self) -> str:
        """The card's section on training."""
        return f"""Trained elsewhere. This exports {self.name} again:

```
dragoman get {shlex.quote(self.name)}{self.options} \\
  {{export}}
```

It may find another translation than {self.program}:

{self.differences}"""


def foreign_subject(
    imported: Imported,
    origin: Origin,
    *,
    tokenizers: tuple[Tokenizer, Tokenizer],
    pair: tuple[str, str],
    languages: Mapping[str, str] | None = None,
    source_end: bool = True,
    beam_size: int,
    length_penalty: float,
    max_source_tokens: int = MAX_TOKENS,
    max_output_tokens: int = MAX_TOKENS,
) -> Subject:
    """The model with the tokenizers and languages of source and target, and how it is decoded by default."""
    architecture = dataclasses.asdict(imported.architecture)
    # Sines and cosines of positions are no parameters; what has several names is counted once.
    arrays = {
        id(array): array.size
        for name, array in imported.weights.items()
        if not (name in (Name.POSITIONS, Name.TARGET_POSITIONS) and _are_sinusoids(array))
    }
    version = f", version {origin.version}" if origin.version else ""
    return Subject(
        model=ImportedModel(imported),
        sizes=({name: value for name, value in architecture.items() if name not in _NO_SIZES},),
        parameters=sum(arrays.values()),
        source_tokenizer=tokenizers[0],
        target_tokenizer=tokenizers[1],
        source_language=pair[0],
        target_language=pair[1],
        languages=languages or {},
        source_end=source_end,
        decoding=DecodingDefaults(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_source_tokens=max_source_tokens,
            max_output_tokens=max_output_tokens,
            max_output_ratio=MAX_OUTPUT_RATIO,
            max_output_margin=MAX_OUTPUT_MARGIN,
        ),
        card=Card(
            description=f"{origin.kind}, {origin.name}{version}.",
            data=f"That of {origin.name}: {origin.data}",
            licence=origin.licence,
            credit=f"The makers of {origin.name}",
        ),
        training=origin.training(),
    )


def _are_sinusoids(table_LD: Floats) -> bool:
    """Whether its columns are pairs of a sine and a cosine, in whichever order."""
    return np.allclose(np.square(table_LD).sum(axis=1), table_LD.shape[1] / 2, rtol=1e-3)


def languages_of_pair(where: Path, source: str | None, target: str | None) -> tuple[str, str]:
    """The languages of both sides. Raises FormatError where nobody says one."""
    for side, language in (("source", source), ("target", target)):
        if not language:
            raise FormatError(f"{where} does not say its {side} language; give it with --{side}-language")
    return str(source), str(target)


def numbered_tokenizer(
    path: Path, model: bytes, numbers: Mapping[str, int], *, size: int, special: SpecialIds
) -> VocabularyTokenizer:
    """A sentencepiece model with numbers of its pieces. Raises FormatError, which names the path."""
    try:
        vocabulary = json.dumps(dict(numbers), ensure_ascii=False).encode()
        return VocabularyTokenizer(model, vocabulary, size=size, ids=special)
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from error


def spelled(pattern: str) -> list[str]:
    """The names that a pattern such as "{q,k,v}_proj" stands for; a name without braces stands for itself."""
    before, _, choice = pattern.partition("{")
    parts, _, behind = choice.partition("}")
    return [f"{before}{part}{behind}" for part in parts.split(",")]


def share_equal(weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """The weights of a Transformer, of which embeddings and positions that are equal are one array."""
    shared = dict(weights)
    for name, others in (
        (Name.TARGET, [Name.SOURCE]),
        (Name.OUTPUT, [Name.SOURCE, Name.TARGET]),
        (Name.TARGET_POSITIONS, [Name.POSITIONS]),
    ):
        equal = (weights[other] for other in others if np.array_equal(weights[other], weights[name]))
        shared[name] = next(equal, weights[name])
    return shared


def starting_with(
    imported: Imported, bos: int, *, never_produced: Sequence[int], barred: Sequence[int] = ()
) -> Imported:
    """The same model, whose translations begin with that token and hold none of the others.

    The token may be one more than it has: it is made then, and never produced.
    """
    unsaid, unscored = tuple(never_produced), tuple(barred)
    architecture = replace(imported.architecture, bos=bos, never_produced=unsaid, barred=unscored)
    return searchable(replace(imported, architecture=architecture), at_least=bos + 1)


def searchable(imported: Imported, *, at_least: int = 0) -> Imported:
    """The same model with a few target tokens more, none of which is produced: its steps search by blocks.

    It has `at_least` so many then. Embeddings of tokens that are added are 0, on both sides where they have
    one embedding.
    """
    weights, stored = dict(imported.weights), dict(imported.stored)
    vocabulary = len(weights[Name.TARGET])
    size = searchable_size(max(vocabulary, at_least))
    if size == vocabulary:
        return imported
    is_shared = weights[Name.SOURCE] is weights[Name.TARGET]
    longer: dict[int, Floats] = {}
    for name in (Name.TARGET, Name.OUTPUT, Name.BIAS, *([Name.SOURCE] if is_shared else [])):
        array = weights[name]
        if id(array) not in longer:
            longer[id(array)] = np.pad(array, ((0, size - vocabulary), *[(0, 0)] * (array.ndim - 1)))
        weights[name] = longer[id(array)]
        if name in stored:
            stored[name] = stored[name].with_rows(size - vocabulary)
    never = {*imported.architecture.never_produced, *range(vocabulary, size)}
    architecture = replace(imported.architecture, never_produced=tuple(sorted(never)))
    return replace(imported, architecture=architecture, weights=weights, stored=stored)


def sinusoids(num_positions: int, width: int) -> Floats:
    """The positions of Vaswani et al. (2017), section 3.5, sines before cosines: [L, D]."""
    half = np.arange((width + 1) // 2)
    angle = np.arange(num_positions)[:, None] / 10000 ** (2 * half / width)
    return np.concatenate([np.sin(angle), np.cos(angle[:, : width // 2])], axis=1).astype(np.float32)


def even_sinusoids(num_positions: int, width: int, *, first: int) -> Floats:
    """Positions from `first` on, of wavelengths from 2π to 20000π with both ends: sines, and cosines behind
    them, and a 0 where the width is odd: [L, D].
    """
    half = width // 2
    wave = np.exp(-np.arange(half) * math.log(10000) / (half - 1))
    angle = np.arange(first, first + num_positions)[:, None] * wave
    table_LD = np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
    return np.pad(table_LD, ((0, 0), (0, width % 2)))
