"""Reads a model as CTranslate2 keeps it: a folder with model.bin, its vocabularies and maybe config.json."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import MULTIPLE_LANGUAGES

from dragoman_export.importers.ctranslate2_tokenizers import (
    Settings,
    Vocabulary,
    find_tokenizer,
    make_tokenizer,
    read_settings,
    read_vocabularies,
)
from dragoman_export.importers.ctranslate2_variables import Variables, read_binary
from dragoman_export.importers.ctranslate2_weights import NUM_HEADS, REVISIONS, read_transformer
from dragoman_export.importers.files import (
    MAX_OUTPUT_MARGIN,
    MAX_OUTPUT_RATIO,
    FormatError,
    command_line,
)
from dragoman_export.importers.hf_tokenizers import languages_of
from dragoman_export.importers.weights import starting_with
from dragoman_export.model import ImportedModel
from dragoman_export.reference.imported import POSITIONS, SOURCE, TARGET
from dragoman_export.subject import Card, Subject

MODEL_FILE = "model.bin"
MAX_TOKENS = 512
"""Most tokens of a sentence, where the model has positions for more: none are trained on longer ones."""

DIFFERENCES = """\
- There a hypothesis' log-probability is divided by length^a, its end counted; here by ((5 + length) / 6)^a
  (Wu et al. 2016, equation 14), with the same length penalty a.
- There a model stored in int8 or int16 also rounds what is multiplied with its weights. Here the weights are
  what is stored, and each precision of the bundle rounds as that precision does."""


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What the files do not say."""

    source_language: str | None
    target_language: str | None
    origin: str
    """What the model is called where it comes from."""
    description: str
    licence: str = ""
    credit: str
    again: str
    """Arguments of `dragoman get` that read it again."""


def load_folder(
    folder: Path,
    *,
    source_language: str | None,
    target_language: str | None,
    source_tokenizer: Path | None = None,
    target_tokenizer: Path | None = None,
) -> Subject:
    """The model in a folder.

    Raises FormatError where it is none, is not whole, or holds what our Transformer has no place for.
    Tokenizers that are not given are looked for in the folder. It finds the tokens that CTranslate2 finds,
    with the same log-probabilities, but for `DIFFERENCES`.
    """
    options = command_line(
        source_language=source_language,
        target_language=target_language,
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
    )
    origin = folder.resolve().name
    return read_model(
        folder,
        Naming(
            source_language=source_language,
            target_language=target_language,
            origin=origin,
            description=f"A Transformer in CTranslate2's format, {origin}.",
            credit=f"The makers of {origin}",
            again=f"{shlex.quote(origin)}{options}",
        ),
        source_tokenizer=source_tokenizer or find_tokenizer(folder, "source"),
        target_tokenizer=target_tokenizer or source_tokenizer or find_tokenizer(folder, "target"),
    )


def read_model(
    folder: Path,
    naming: Naming,
    *,
    source_tokenizer: Path | None,
    target_tokenizer: Path | None,
    beam_size: int = 4,
    length_penalty: float = 1.0,
    is_unk_produced: bool = True,
) -> Subject:
    """The model in a folder, with these names and tokenizers. Raises FormatError."""
    binary = read_binary(folder / MODEL_FILE)
    if binary.spec not in NUM_HEADS:
        raise FormatError(
            f"{binary.path} is a model of kind {binary.spec!r}; what is read is TransformerSpec"
        )
    if binary.revision not in REVISIONS:
        raise FormatError(
            f"{binary.path} is of revision {binary.revision} of {binary.spec or 'a Transformer'}; read are "
            f"{REVISIONS[0]} to {REVISIONS[-1]}"
        )
    variables = Variables(binary)
    settings = read_settings(folder, binary.version, variables)
    starts_from_zero = bool(variables.number("decoder/start_from_zero_embedding", 0))
    source, target = read_vocabularies(folder, settings)
    languages = languages_of(source.tokens) if source is target else {}
    pair = _pair(folder, naming, languages)
    # Marian's models alone start so, and each was trained with sources that end; the converter of those on
    # Hugging Face's hub leaves that to the callers' tokenizer, and does not say it; so of many languages.
    source_end = settings.source_end or starts_from_zero or bool(languages)
    imported = read_transformer(
        binary, variables, max_positions=MAX_TOKENS, norm_epsilon=settings.norm_epsilon
    )
    for side, vocabulary, name in (("source", source, SOURCE), ("target", target, TARGET)):
        if len(vocabulary.tokens) != len(imported.weights[name]):
            raise FormatError(
                f"{vocabulary.path} is not of this model: it has {len(vocabulary.tokens)} tokens, and "
                f"{binary.path} {len(imported.weights[name])} {side} embeddings"
            )
    bos = len(target.tokens) if starts_from_zero else _id(target, settings.decoder_start, settings)
    _id(target, settings.eos, settings)
    if source_end:
        _id(source, settings.eos, settings)
    never = [bos] if starts_from_zero else []
    if not is_unk_produced:
        never.append(_id(target, settings.unk, settings))
    imported = starting_with(imported, bos, never_produced=tuple(never))
    model = ImportedModel(imported)
    target_tokens = make_tokenizer(
        target,
        target_tokenizer,
        side="target",
        size=len(imported.weights[TARGET]),
        bos=bos,
        settings=settings,
    )
    is_one = (
        source is target
        and source_tokenizer == target_tokenizer
        and imported.weights[SOURCE] is imported.weights[TARGET]
    )
    source_tokens = (
        target_tokens
        if is_one
        else make_tokenizer(
            source,
            source_tokenizer,
            side="source",
            size=len(imported.weights[SOURCE]),
            # A source has no beginning: any of its tokens does.
            bos=bos if bos < len(imported.weights[SOURCE]) else 0,
            settings=settings,
        )
    )
    max_tokens = len(imported.weights[POSITIONS])
    return Subject(
        model=model,
        sizes=(model.sizes,),
        parameters=model.num_parameters,
        source_tokenizer=source_tokens,
        target_tokenizer=target_tokens,
        source_language=pair[0],
        target_language=pair[1],
        languages=languages,
        source_end=source_end,
        decoding=DecodingDefaults(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_source_tokens=max_tokens,
            max_output_tokens=max_tokens - bool(languages),
            max_output_ratio=MAX_OUTPUT_RATIO,
            max_output_margin=MAX_OUTPUT_MARGIN,
        ),
        card=Card(
            description=naming.description,
            data=f"That of {naming.origin}: see where it comes from",
            licence=naming.licence,
            credit=naming.credit,
        ),
        training=_training(naming),
    )


def _pair(folder: Path, naming: Naming, languages: Mapping[str, str]) -> tuple[str, str]:
    """The languages of both sides. Raises FormatError where nobody says them, or says too much."""
    found = []
    for side, given in (("source", naming.source_language), ("target", naming.target_language)):
        if not (given or languages):
            raise FormatError(f"{folder} does not say its {side} language; give it with --{side}-language")
        if given and languages:
            raise FormatError(
                f"{folder} is of many languages, all of which its bundle has; leave --{side}-language out"
            )
        found.append(given or MULTIPLE_LANGUAGES)
    return found[0], found[1]


def _id(vocabulary: Vocabulary, token: str, settings: Settings) -> int:
    ids = vocabulary.ids()
    if token not in ids:
        raise FormatError(
            f"{vocabulary.path} is not of this model: it lacks {token!r}, which the model begins or ends with"
        )
    return ids[token]


def _training(naming: Naming) -> str:
    return f"""Trained elsewhere. This exports {naming.origin} again:

```
dragoman get {naming.again} \\
  {{export}}
```

It may find another translation than CTranslate2:

{DIFFERENCES}"""
