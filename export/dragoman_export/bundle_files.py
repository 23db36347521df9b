"""Files of a bundle as they are written: graphs, tokenizers, and recipes.

`encoder.onnx`, `decoder_step.onnx` and those of a shortlist have the weights of all in one file beside them.
A weight that several graphs use, such as an embedding that both sides share, is stored once; onnxruntime maps
the file into memory.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx_ir as ir
from dragoman_bundle.manifest import ENCODER_GRAPH, SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH, STEP_GRAPH
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.graphs.builder import Graphs
from dragoman_export.shortlist.graphs import ShortlistGraphs

WEIGHTS_FILE = "weights.bin"
MIN_BYTES = 1024
"""Smaller constants stay in the graph, where onnxruntime sees them while it reads shapes."""
ALIGNMENT = 64
"""A cache line: no kernel has to begin a matrix in the middle of one."""


def write_graphs(graphs: Graphs, folder: Path, shortlist: ShortlistGraphs | None = None) -> None:
    """Writes the graphs and their weights to the folder, which is made."""
    models = {ENCODER_GRAPH: graphs.encoder, STEP_GRAPH: graphs.decoder_step}
    if shortlist is not None:
        models |= {SHORTLIST_GRAPH: shortlist.shortlist, SHORTLIST_STEP_GRAPH: shortlist.decoder_step}
    folder.mkdir(parents=True)
    offsets: dict[tuple[str, bytes], int] = {}
    with (folder / WEIGHTS_FILE).open("wb") as weights:
        for name, original in models.items():
            model = original.clone()
            for value in model.graph.initializers.values():
                tensor = value.const_value
                assert tensor is not None
                if tensor.nbytes < MIN_BYTES:
                    continue
                content = tensor.tobytes()
                key = (tensor.dtype.name, hashlib.sha256(content).digest())
                if key not in offsets:
                    weights.write(bytes(-weights.tell() % ALIGNMENT))
                    offsets[key] = weights.tell()
                    weights.write(content)
                value.const_value = ir.ExternalTensor(
                    WEIGHTS_FILE,
                    offsets[key],
                    len(content),
                    tensor.dtype,
                    shape=ir.Shape(tensor.shape.numpy()),
                    name=str(value.name),
                    base_dir=folder,
                )
            ir.save(model, folder / f"{name}.onnx")


class TokenizerFiles(NamedTuple):
    """Names of the files of both sides; both may be in one."""

    source: str
    target: str
    source_pieces: str | None
    """Where the pieces' ids are, if they are not the tokenizer's own."""
    target_pieces: str | None


def write_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> TokenizerFiles:
    """Writes what both sides need: one file where they are one tokenizer."""
    names = ("shared.spm", "shared.spm") if source is target else ("source.spm", "target.spm")
    for name, tokenizer in zip(names, (source, target), strict=True):
        (folder / name).write_bytes(tokenizer.model)
    if not isinstance(source, VocabularyTokenizer) or not isinstance(target, VocabularyTokenizer):
        return TokenizerFiles(*names, None, None)
    same = source.vocabulary == target.vocabulary
    files = ("vocab.json", "vocab.json") if same else ("source.vocab.json", "target.vocab.json")
    for file, vocabulary in zip(files, (source.vocabulary, target.vocabulary), strict=True):
        (folder / file).write_bytes(vocabulary)
    return TokenizerFiles(*names, *files)


if TYPE_CHECKING:
    from dragoman_training.recipe.settings import Recipe


def recipe_files(members: Sized) -> list[str]:
    """Names of the recipes in a bundle: one, or one for each member of an ensemble."""
    if len(members) == 1:
        return ["recipe.toml"]
    return [f"recipe-{number}.toml" for number in range(1, len(members) + 1)]


def recipe_toml(recipe: "Recipe") -> str:
    """The recipe as TOML: `load_recipe` makes the same recipe of it."""
    lines: list[str] = []
    tables: list[str] = []
    for name, value in dataclasses.asdict(recipe).items():
        if isinstance(value, dict):
            settings = [f"{key} = {_toml(setting)}" for key, setting in value.items()]
            tables.append("\n".join([f"[{name}]", *settings]))
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n\n".join(["\n".join(lines), *tables]) + "\n"


def _toml(value: Any) -> str:
    """A string, number, truth value or list of these; JSON's forms of them are TOML's too."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
