"""Reads a model as CTranslate2 keeps it: a folder with model.bin, its vocabularies and maybe config.json."""

from pathlib import Path

from dragoman_bundle.manifest import MULTIPLE_LANGUAGES

from dragoman_export.importers.ctranslate2_tokenizers import (
    Settings,
    Vocabulary,
    make_tokenizer,
    read_settings,
    read_vocabularies,
)
from dragoman_export.importers.ctranslate2_variables import read_binary
from dragoman_export.importers.ctranslate2_weights import NUM_HEADS, REVISIONS, read_transformer
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.hf_tokenizers import languages_of
from dragoman_export.importers.subjects import (
    BEAM_SIZE,
    Origin,
    foreign_subject,
    languages_of_pair,
    starting_with,
)
from dragoman_export.model import Subject
from dragoman_export.reference.imported import POSITIONS, SOURCE, TARGET

MODEL_FILE = "model.bin"


def read_model(
    folder: Path,
    origin: Origin,
    languages: tuple[str | None, str | None],
    cutters: tuple[Path | None, Path | None],
    *,
    length_penalty: float = 1.0,
    is_unk_produced: bool = True,
) -> Subject:
    """A folder's model, with languages and sentencepiece models of both sides. Raises FormatError."""
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
    settings = read_settings(folder, binary)
    starts_from_zero = bool(binary.number("decoder/start_from_zero_embedding", 0))
    source, target = read_vocabularies(folder, settings)
    many = languages_of(source.tokens) if source is target else {}
    for side, language in zip(("source", "target"), languages, strict=True):
        if many and language:
            raise FormatError(
                f"{folder} is of many languages, all of which its bundle has; leave --{side}-language out"
            )
    pair = (MULTIPLE_LANGUAGES,) * 2 if many else languages_of_pair(folder, *languages)
    # Marian's models alone start so, and each was trained with sources that end; the converter of those on
    # Hugging Face's hub leaves that to the callers' tokenizer, and does not say it; so of many languages.
    source_end = settings.source_end or starts_from_zero or bool(many)
    imported = read_transformer(binary, norm_epsilon=settings.norm_epsilon)
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
    imported = starting_with(imported, bos, never_produced=never)
    sizes = [len(imported.weights[name]) for name in (SOURCE, TARGET)]
    is_one = source is target and imported.weights[SOURCE] is imported.weights[TARGET]
    target_tokens = make_tokenizer(target, cutters[1], "target", sizes[1], bos, settings)
    source_tokens = target_tokens
    if not (is_one and cutters[0] == cutters[1]):
        # A source has no beginning: any of its tokens does.
        source_bos = bos if bos < sizes[0] else 0
        source_tokens = make_tokenizer(source, cutters[0], "source", sizes[0], source_bos, settings)
    max_tokens = len(imported.weights[POSITIONS])
    return foreign_subject(
        imported,
        origin,
        tokenizers=(source_tokens, target_tokens),
        pair=pair,
        languages=many,
        source_end=source_end,
        beam_size=BEAM_SIZE,
        length_penalty=length_penalty,
        max_source_tokens=max_tokens,
        max_output_tokens=max_tokens - bool(many),
    )


def _id(vocabulary: Vocabulary, token: str, settings: Settings) -> int:
    ids = vocabulary.ids()
    if token not in ids:
        raise FormatError(
            f"{vocabulary.path} is not of this model: it lacks {token!r}, which the model begins or ends with"
        )
    return ids[token]
