"""A saved aligner: a folder with `aligner.json`, arrays of both directions, words of both sides."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dragoman_training.alignment.aligner import Aligner, DirectedModel, Lexicon
from dragoman_training.alignment.chain import kind_of, model_of
from dragoman_training.alignment.corpus.bitext import Vocabulary
from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.saved_folder import (
    read_arrays,
    read_folder,
    read_words,
    write_arrays,
    write_manifest,
    write_words,
    written_whole,
)

FORMAT_VERSION = 2
_MANIFEST, _DIRECTIONS = "aligner.json", ("forward", "backward")


def save_aligner(aligner: Aligner, folder: Path) -> None:
    """Writes the folder, all of it or nothing. Raises ValueError where something is there already."""
    with written_whole(folder) as partial:
        for side, vocabulary in (("source", aligner.source), ("target", aligner.target)):
            write_words(partial / f"{side}.words", vocabulary.words)
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
            write_arrays(partial / f"{name}.npz", arrays)
        manifest = {
            "format_version": FORMAT_VERSION,
            "model": aligner.name,
            "kinds": kinds,
            "tokenize": aligner.rule.tokenize,
            "lowercase": aligner.rule.lowercase,
            "num_words": {"source": len(aligner.source.words), "target": len(aligner.target.words)},
        }
        write_manifest(partial / _MANIFEST, manifest)


def load_aligner(folder: Path) -> Aligner:
    """Reads it. Raises ValueError for what is no aligner, or one of another version."""
    with read_folder(
        folder, _MANIFEST, kind="aligner", command="dragoman align train", version=FORMAT_VERSION
    ) as manifest:
        source, target = (
            Vocabulary(read_words(folder / f"{side}.words", manifest["num_words"][side]))
            for side in ("source", "target")
        )
        forward, backward = (
            _load_direction(folder / f"{name}.npz", manifest["kinds"][name]) for name in _DIRECTIONS
        )
        return Aligner(
            name=manifest["model"],
            rule=WordRule(tokenize=manifest["tokenize"], lowercase=manifest["lowercase"]),
            source=source,
            target=target,
            forward=forward,
            backward=backward,
        )


def _load_direction(path: Path, kind: str) -> DirectedModel:
    arrays = read_arrays(path)
    lexicon = Lexicon(
        first_V=arrays["lexicon.first"],
        target_P=arrays["lexicon.target"],
        probability_P=arrays["lexicon.probability"],
    )
    own = {key.removeprefix("model."): array for key, array in arrays.items() if key.startswith("model.")}
    return DirectedModel(model=model_of(kind, own), lexicon=lexicon)
