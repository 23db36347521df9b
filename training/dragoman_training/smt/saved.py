"""A saved system: a folder with `smt.json`, words of both sides, phrases and the language model."""

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Vocabulary
from dragoman_training.alignment.saved import check_free, written_whole
from dragoman_training.smt.language_model.model import LanguageModel
from dragoman_training.smt.phrases.table import PhraseTable
from dragoman_training.smt.search.decoder import SearchOptions
from dragoman_training.smt.search.features import Weights
from dragoman_training.smt.surface import Casing
from dragoman_training.smt.system import System

FORMAT_VERSION = 1
_MANIFEST = "smt.json"


def save_system(system: System, folder: Path) -> None:
    """Writes the folder, all of it or nothing."""
    check_free(folder)
    with written_whole(folder) as partial:
        for side, vocabulary in (("source", system.source), ("target", system.target)):
            _write_words(partial / f"{side}.words", vocabulary.words)
        _write_words(partial / "source.casing", tuple(system.source_casing.form.values()))
        _write_arrays(partial / "phrases.npz", system.table.arrays())
        _write_arrays(partial / "language-model.npz", system.language_model.arrays())
        manifest = {
            "format_version": FORMAT_VERSION,
            "weights": dataclasses.asdict(system.weights),
            "search": dataclasses.asdict(system.search),
            "num_words": {"source": len(system.source.words), "target": len(system.target.words)},
        }
        (partial / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def load_system(folder: Path) -> System:
    """Reads it. Raises ValueError for what is no system, or one of another version."""
    if not (folder / _MANIFEST).is_file():
        raise ValueError(
            f"{folder} is no saved system: it has no {_MANIFEST}; `dragoman smt train` writes one"
        )
    try:
        manifest = json.loads((folder / _MANIFEST).read_text("utf-8"))
        version = manifest["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / _MANIFEST} is damaged ({error!r}): train the system again") from error
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{folder} has format version {version}, and this release reads {FORMAT_VERSION}: train it again"
        )
    try:
        source, target = (Vocabulary(_read_words(folder / f"{side}.words")) for side in ("source", "target"))
        for side, vocabulary in (("source", source), ("target", target)):
            if len(vocabulary.words) != manifest["num_words"][side]:
                raise ValueError(f"{side}.words has {len(vocabulary.words)} words")
        forms = _read_words(folder / "source.casing")
        return System(
            source=source,
            target=target,
            source_casing=Casing({form.lower(): form for form in forms}),
            table=PhraseTable.from_arrays(_read_arrays(folder / "phrases.npz")),
            language_model=LanguageModel.from_arrays(_read_arrays(folder / "language-model.npz")),
            weights=Weights(**manifest["weights"]),
            search=SearchOptions(**manifest["search"]),
        )
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{folder} is damaged ({error}): train the system again") from error


def _write_words(path: Path, words: tuple[str, ...]) -> None:
    path.write_text("".join(f"{word}\n" for word in words), "utf-8", newline="\n")


def _read_words(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text("utf-8").split("\n")[:-1])


def _write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
