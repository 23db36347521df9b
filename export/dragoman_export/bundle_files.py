"""Files of a bundle as they are written: graphs, tokenizers and recipes; and the manifest that lists them.

`encoder.onnx`, `decoder_step.onnx` and those of a shortlist have the weights of all in one file beside them.
A weight that several graphs use, such as an embedding that both sides share, is stored once; onnxruntime maps
the file into memory. A manifest has the tensors between the graphs.
"""

import dataclasses
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx_ir as ir
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import (
    ENCODER_GRAPH,
    FORMAT_VERSION,
    SHORTLIST_GRAPH,
    SHORTLIST_STEP_GRAPH,
    STEP_GRAPH,
    Architecture,
    Manifest,
    ShortlistSpec,
    SpecialIds,
    TensorContract,
    TensorSpec,
)
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.graphs.attention import PAST
from dragoman_export.graphs.builder import GROWTH, Graphs
from dragoman_export.model import Subject
from dragoman_export.shortlist.graphs import ShortlistGraphs

if TYPE_CHECKING:
    from dragoman_training.recipe.settings import Recipe

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


def tensor_contract(graphs: Mapping[str, Graphs]) -> TensorContract:
    """The memory and state that the decoder step of each precision takes."""
    specs = _specs({precision: pair.decoder_step.graph.inputs for precision, pair in graphs.items()})
    kinds = ("memory.", "state.")
    memory, state = (tuple(spec for spec in specs if spec.name.startswith(kind)) for kind in kinds)
    return TensorContract(memory=memory, state=state)


def shortlist_memory(graphs: Mapping[str, ShortlistGraphs]) -> tuple[TensorSpec, ...]:
    """The memory that the shortlist's graphs of each precision make of candidates; not all make the same."""
    return _specs({precision: pair.shortlist.graph.outputs for precision, pair in graphs.items()})


def _specs(values: Mapping[str, Sequence[ir.Value]]) -> tuple[TensorSpec, ...]:
    """The specifications of the memory and state that graphs of each precision take or give."""
    tensors: dict[str, dict[str, ir.Value]] = defaultdict(dict)
    for precision, found in values.items():
        for value in found:
            if str(value.name).startswith(("memory.", "state.")):
                tensors[str(value.name)][precision] = value
    return tuple(_spec(name, tensors[name]) for name in sorted(tensors))


def _spec(name: str, values: Mapping[str, ir.Value]) -> TensorSpec:
    sizes = next(iter(values.values())).shape
    assert sizes is not None
    shape = tuple(size if isinstance(size, int) else str(size) for size in sizes)
    types = {precision: value.dtype for precision, value in values.items() if value.dtype is not None}
    return TensorSpec(
        name=name,
        dtype={precision: dtype.numpy().name for precision, dtype in types.items()},
        shape=shape,
        growth_axis=shape.index(GROWTH) if GROWTH in shape else None,
        padded_behind=tuple(precision for precision, value in values.items() if _is_packed(value)),
    )


def _is_packed(state: ir.Value) -> bool:
    """Whether its rows, once they are gathered by parent, are read by the kernel that packs pasts."""
    gathered = [node.outputs[0] for node in state.consumers() if node.op_type == "Gather"]
    return any(node.op_type == PAST for value in gathered for node in value.consumers())


def make_manifest(
    subject: Subject,
    destination: Path,
    *,
    precisions: Sequence[str],
    contract: TensorContract,
    tokenizers: TokenizerFiles,
    shortlist: ShortlistSpec | None,
) -> Manifest:
    """The manifest of a bundle on its way to NAME/VERSION: without sums of its files, without quality."""
    source, target = subject.source_tokenizer, subject.target_tokenizer
    return Manifest(
        format_version=FORMAT_VERSION,
        name=destination.parent.name,
        version=destination.name,
        source_language=subject.source_language,
        target_language=subject.target_language,
        architecture=_architecture(subject),
        source_vocabulary=source.vocabulary_size,
        target_vocabulary=target.vocabulary_size,
        source_ids=special_ids(source),
        target_ids=special_ids(target),
        source_tokenizer=tokenizers.source,
        target_tokenizer=tokenizers.target,
        contract=contract,
        decoding=DecodingDefaults(**dataclasses.asdict(subject.decoding)),
        precisions=tuple(precisions),
        quality=(),
        licence=subject.card.licence,
        credit=subject.card.credit,
        files={},
        shortlist=shortlist,
        source_pieces=tokenizers.source_pieces,
        target_pieces=tokenizers.target_pieces,
        attention_of_input=subject.attention_of_input,
        source_end=subject.source_end,
        languages=subject.languages,
        language_token=source.language_token if isinstance(source, VocabularyTokenizer) else None,
    )


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """The ids of a tokenizer that stand for no piece of text."""
    return SpecialIds(pad=tokenizer.pad_id, unk=tokenizer.unk_id, bos=tokenizer.bos_id, eos=tokenizer.eos_id)


def _architecture(subject: Subject) -> Architecture:
    """Family and sizes, as the recipe gives them; an ensemble's, member by member."""
    members = [dict(sizes) for sizes in subject.sizes]
    families = [sizes.pop("family") for sizes in members]
    descriptions = [
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sizes.items()) for sizes in members
    ]
    if len(members) > 1:
        descriptions = [f"{family}: {sizes}" for family, sizes in zip(families, descriptions, strict=True)]
    return Architecture(
        family=families[0] if len(members) == 1 else "ensemble",
        parameters=subject.parameters,
        description="; ".join(descriptions),
    )
