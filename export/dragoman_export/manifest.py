"""A bundle's manifest, of what is exported, what it is made of, and the tensors between its graphs."""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import (
    FORMAT_VERSION,
    Architecture,
    Manifest,
    ShortlistSpec,
    SpecialIds,
    TensorContract,
    TensorSpec,
)
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.bundle_files import TokenizerFiles
from dragoman_export.graphs.attention import PAST
from dragoman_export.graphs.builder import GROWTH, Graphs
from dragoman_export.model import Subject
from dragoman_export.shortlist.graphs import ShortlistGraphs


def tensor_contract(graphs: Mapping[str, Graphs]) -> TensorContract:
    """The memory and state that the decoder step of each precision takes."""
    specs = _specs({precision: pair.decoder_step.graph.inputs for precision, pair in graphs.items()})
    memory, state = (
        tuple(spec for spec in specs if spec.name.startswith(kind)) for kind in ("memory.", "state.")
    )
    return TensorContract(memory=memory, state=state)


def shortlist_memory(graphs: Mapping[str, ShortlistGraphs]) -> tuple[TensorSpec, ...]:
    """The memory that the shortlist's graphs of each precision make of candidates; not all make the same."""
    return _specs({precision: pair.shortlist.graph.outputs for precision, pair in graphs.items()})


def _specs(values: Mapping[str, Sequence[ir.Value]]) -> tuple[TensorSpec, ...]:
    """Of the memory and state that graphs of each precision take or give."""
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
