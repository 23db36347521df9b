"""A saved system: a folder with `smt.json`, words of both sides, phrases and the language model."""

import dataclasses
from pathlib import Path

from dragoman_training.alignment.corpus.bitext import Vocabulary
from dragoman_training.classics.smt.language_model.model import LanguageModel
from dragoman_training.classics.smt.phrases.table import PhraseTable
from dragoman_training.classics.smt.search.decoder import SearchOptions
from dragoman_training.classics.smt.search.features import Weights
from dragoman_training.classics.smt.surface import Casing
from dragoman_training.classics.smt.system import System
from dragoman_training.saved_folder import (
    read_arrays,
    read_folder,
    read_words,
    write_arrays,
    write_manifest,
    write_words,
    written_whole,
)

FORMAT_VERSION = 1
_MANIFEST = "smt.json"


def save_system(system: System, folder: Path) -> None:
    """Writes the folder, all of it or nothing. Raises ValueError where something is there already."""
    with written_whole(folder) as partial:
        for side, vocabulary in (("source", system.source), ("target", system.target)):
            write_words(partial / f"{side}.words", vocabulary.words)
        write_words(partial / "source.casing", tuple(system.source_casing.form.values()))
        write_arrays(partial / "phrases.npz", system.table.arrays())
        write_arrays(partial / "language-model.npz", system.language_model.arrays())
        manifest = {
            "format_version": FORMAT_VERSION,
            "weights": dataclasses.asdict(system.weights),
            "search": dataclasses.asdict(system.search),
            "num_words": {"source": len(system.source.words), "target": len(system.target.words)},
        }
        write_manifest(partial / _MANIFEST, manifest)


def load_system(folder: Path) -> System:
    """Reads it. Raises ValueError for what is no system, or one of another version."""
    with read_folder(
        folder, _MANIFEST, kind="system", command="dragoman smt train", version=FORMAT_VERSION
    ) as manifest:
        source, target = (
            Vocabulary(read_words(folder / f"{side}.words", manifest["num_words"][side]))
            for side in ("source", "target")
        )
        forms = read_words(folder / "source.casing")
        return System(
            source=source,
            target=target,
            source_casing=Casing({form.lower(): form for form in forms}),
            table=PhraseTable.from_arrays(read_arrays(folder / "phrases.npz")),
            language_model=LanguageModel.from_arrays(read_arrays(folder / "language-model.npz")),
            weights=Weights(**manifest["weights"]),
            search=SearchOptions(**manifest["search"]),
        )
