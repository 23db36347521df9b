"""Which of the files beside each other are a model's: parameters, vocabularies, how it decodes.

Owns names, as releases of OPUS-MT, Firefox and Marian's own training have them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dragoman_export.from_marian.errors import MarianFileError

DECODER = "decoder.yml"
_MODELS = ("*.npz", "*.bin")
_NO_MODEL = re.compile(r"^(lex|vocab|srcvocab|trgvocab)\.|optimizer|\.s2t\.")
_PAIR = re.compile(r"\.([a-z]{2})([a-z]{2})\.")
"""Languages in a name of Firefox's files, as in `model.deen.intgemm.alphas.bin`."""
_SHARED = ("vocab.spm", "vocabulary.spm", "vocab.*.spm", "*.vocab.yml", "vocab.yml", "vocab.*.yml")
_SEPARATE = (
    ("srcvocab.*.spm", "trgvocab.*.spm"),
    ("vocab.src.*", "vocab.trg.*"),
    ("*.src.vocab.yml", "*.trg.vocab.yml"),
)


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of a model."""

    model: Path
    vocabularies: tuple[Path, Path]
    """Of source and target; the same path where one is for both."""
    cutters: tuple[Path | None, Path | None]
    """Sentencepiece models beside vocabularies that only number pieces."""
    decoder: Mapping[str, Any]
    """`decoder.yml`: how Marian was told to decode; empty where there is none."""
    languages: tuple[str, str] | None
    """What the names say of source and target."""


def find_files(path: Path, source: Path | None, target: Path | None) -> Files:
    """The files of a model in a folder, or beside its file. Raises MarianFileError where some are missing.

    `source` and `target` are vocabularies, or what cuts text for those found, that the user names.
    """
    folder = path if path.is_dir() else path.parent
    decoder = _read_decoder(folder / DECODER)
    model = path if path.is_file() else _find_model(folder, decoder)
    vocabularies = _find_vocabularies(folder, model, decoder, source, target)
    beside = [folder / f"{side}.spm" for side in ("source", "target")]
    found = [each if each.is_file() else None for each in beside]
    pair = _PAIR.search(model.name)
    return Files(
        model=model,
        vocabularies=vocabularies,
        cutters=(source or found[0], target or source or found[1]),
        decoder=decoder,
        languages=(pair[1], pair[2]) if pair else None,
    )


def _model_files(folder: Path) -> list[Path]:
    found = [each for pattern in _MODELS for each in sorted(folder.glob(pattern))]
    return [each for each in found if not _NO_MODEL.search(each.name)]


def _find_model(folder: Path, decoder: Mapping[str, Any]) -> Path:
    named = [folder / Path(str(name)).name for name in decoder.get("models") or ()]
    found = named or _model_files(folder)
    if len(found) != 1:
        names = ", ".join(each.name for each in found)
        kind = (
            f"an ensemble of {names}"
            if named
            else f"{len(found)} models of Marian's: {names or '*.npz, *.bin'}"
        )
        raise MarianFileError(f"{folder} has {kind}; one is imported: give its file")
    return found[0]


def _find_vocabularies(
    folder: Path, model: Path, decoder: Mapping[str, Any], source: Path | None, target: Path | None
) -> tuple[Path, Path]:
    named = [folder / Path(str(name)).name for name in decoder.get("vocabs") or ()]
    if len(named) == 2 and all(each.is_file() for each in named):
        return named[0], named[1]
    pair = _PAIR.search(model.name)
    for patterns in _SEPARATE:
        first, second = (_one(folder, pattern, pair) for pattern in patterns)
        if first is not None and second is not None:
            return first, second
    for pattern in _SHARED:
        shared = _one(folder, pattern, pair)
        if shared is not None:
            return shared, shared
    if source is not None:
        return source, target or source
    raise MarianFileError(
        f"{folder} has no vocabulary, as vocab.spm or vocab.yml for both sides; give those of {model.name} "
        "with --source-tokenizer and --target-tokenizer"
    )


def _one(folder: Path, pattern: str, pair: Sequence[str] | re.Match[str] | None) -> Path | None:
    """The only file of that name, or of several the one of the same pair of languages."""
    found = sorted(folder.glob(pattern))
    if len(found) > 1 and pair is not None:
        found = [each for each in found if pair[0] in each.name]
    return found[0] if len(found) == 1 else None


def _read_decoder(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        decoder = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise MarianFileError(f"{path} is no YAML: {error}") from error
    if not isinstance(decoder, dict):
        raise MarianFileError(f"{path} is no YAML of options")
    return decoder
