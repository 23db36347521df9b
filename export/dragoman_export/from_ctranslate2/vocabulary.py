"""The vocabularies of a model of CTranslate2: a token a line, or a list in JSON."""

import json
from dataclasses import dataclass
from pathlib import Path

from dragoman_export.from_ctranslate2.errors import CTranslate2Error
from dragoman_export.from_ctranslate2.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Tokens by their ids."""

    path: Path
    tokens: tuple[str, ...]

    def ids(self) -> dict[str, int]:
        """The id of each token; of one that stands there twice, the first."""
        return {token: id_ for id_, token in reversed(list(enumerate(self.tokens)))}


def read_vocabularies(folder: Path, settings: Settings) -> tuple[Vocabulary, Vocabulary]:
    """Source and target; the same object where one is for both. Raises CTranslate2Error."""
    shared = _find(folder, "shared_vocabulary")
    if shared is not None:
        vocabulary = _read(shared, settings)
        return vocabulary, vocabulary
    found = [_find(folder, f"{side}_vocabulary") for side in ("source", "target")]
    if _find(folder, "source_vocabulary_1") is not None:
        raise CTranslate2Error(
            f"{folder} has source features beside the tokens; such models can't be exported"
        )
    source, target = found
    if source is None or target is None:
        side = "source" if source is None else "target"
        raise CTranslate2Error(
            f"{folder} has no {side}_vocabulary.txt or .json, nor shared_vocabulary.txt or .json for both "
            "sides"
        )
    return _read(source, settings), _read(target, settings)


def _find(folder: Path, name: str) -> Path | None:
    paths = [folder / f"{name}.{suffix}" for suffix in ("json", "txt")]
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path, settings: Settings) -> Vocabulary:
    try:
        text = path.read_bytes().decode()
        tokens = _json(path, text) if path.suffix == ".json" else _lines(text)
    except OSError as error:
        raise CTranslate2Error(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CTranslate2Error(f"{path} is no text in UTF-8: {error}") from error
    # As CTranslate2 does: the models of OpenNMT-tf have it behind what is in the file.
    if settings.unk not in tokens:
        tokens.append(settings.unk)
    return Vocabulary(path=path, tokens=tuple(tokens))


def _lines(text: str) -> list[str]:
    """Only line feeds end a line: some tokens are what others would take for an end."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line.removesuffix("\r") for line in lines]
    return lines


def _json(path: Path, text: str) -> list[str]:
    try:
        tokens = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CTranslate2Error(f"{path} is not JSON: {error}") from error
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise CTranslate2Error(f"{path} is no list of tokens")
    return tokens
