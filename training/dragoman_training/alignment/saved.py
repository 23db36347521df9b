"""A saved aligner: a folder with `aligner.json`, arrays of both directions, words of both sides."""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.aligner import Aligner, DirectedModel, Lexicon
from dragoman_training.alignment.chain import kind_of, model_of
from dragoman_training.alignment.corpus.bitext import Vocabulary
from dragoman_training.alignment.corpus.text import WordRule

FORMAT_VERSION = 1
_MANIFEST, _SIDES, _DIRECTIONS = "aligner.json", ("source", "target"), ("forward", "backward")


def check_free(folder: Path) -> None:
    """Raises ValueError where something is there already, before a training of minutes."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists: choose another folder with --out, or move it away")


def save_aligner(aligner: Aligner, folder: Path) -> None:
    """Writes the folder, all of it or nothing."""
    check_free(folder)
    with written_whole(folder) as partial:
        for side in _SIDES:
            words = aligner.source.words if side == "source" else aligner.target.words
            (partial / f"{side}.words").write_text(
                "".join(f"{word}\n" for word in words), "utf-8", newline="\n"
            )
        kinds = {}
        for name in _DIRECTIONS:
            directed = aligner.forward if name == "forward" else aligner.backward
            lexicon = directed.lexicon
            kinds[name] = kind_of(directed.model)
            arrays: dict[str, NDArray[Any]] = {
                "lexicon.first": lexicon.first_V,
                "lexicon.target": lexicon.target_P,
                "lexicon.probability": lexicon.probability_P,
                **{f"model.{key}": array for key, array in directed.model.arrays().items()},
            }
            np.savez_compressed(partial / f"{name}.npz", allow_pickle=False, **arrays)
        manifest = {
            "format_version": FORMAT_VERSION,
            "model": aligner.name,
            "kinds": kinds,
            "tokenize": aligner.rule.tokenize,
            "lowercase": aligner.rule.lowercase,
            "num_words": {"source": len(aligner.source.words), "target": len(aligner.target.words)},
        }
        (partial / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def load_aligner(folder: Path) -> Aligner:
    """Reads it. Raises ValueError for what is no aligner, or one of another version."""
    if not (folder / _MANIFEST).is_file():
        raise ValueError(
            f"{folder} is no saved aligner: it has no {_MANIFEST}; `dragoman align train` writes one"
        )
    try:
        manifest = json.loads((folder / _MANIFEST).read_text("utf-8"))
        version = manifest["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / _MANIFEST} is damaged ({error!r}): train the aligner again") from error
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{folder} has format version {version}, and this release reads {FORMAT_VERSION}: train it again"
        )
    try:
        vocabularies = [
            Vocabulary(tuple((folder / f"{side}.words").read_text("utf-8").split("\n")[:-1]))
            for side in _SIDES
        ]
        for side, vocabulary in zip(_SIDES, vocabularies, strict=True):
            if len(vocabulary.words) != manifest["num_words"][side]:
                raise ValueError(f"{side}.words has {len(vocabulary.words)} words")
        forward, backward = (
            _load_direction(folder / f"{name}.npz", manifest["kinds"][name]) for name in _DIRECTIONS
        )
        return Aligner(
            name=manifest["model"],
            rule=WordRule(tokenize=manifest["tokenize"], lowercase=manifest["lowercase"]),
            source=vocabularies[0],
            target=vocabularies[1],
            forward=forward,
            backward=backward,
        )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{folder} is damaged ({error}): train the aligner again") from error


def _load_direction(path: Path, kind: str) -> DirectedModel:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        lexicon = Lexicon(
            first_V=arrays["lexicon.first"],
            target_P=arrays["lexicon.target"],
            probability_P=arrays["lexicon.probability"],
        )
        own = {key.removeprefix("model."): arrays[key] for key in arrays.files if key.startswith("model.")}
    return DirectedModel(model=model_of(kind, own), lexicon=lexicon)


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder that takes the place of `folder` once all is written, and of which nothing is left before."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir()
    try:
        yield partial
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
