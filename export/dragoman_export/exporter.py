"""Checkpoint to bundle: trace, quantize, check against PyTorch, describe, and put in place.

Nothing appears at the destination unless the graphs of every precision pass the parity gate.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.manifest import (
    CARD_FILE,
    FORMAT_VERSION,
    SHORTLIST_FILE,
    Architecture,
    DecodingDefaults,
    Manifest,
    ShortlistSpec,
    SpecialIds,
    check_name,
)
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizer import Tokenizer
from dragoman_bundle.vocabulary_tokenizer import VocabularyTokenizer
from dragoman_bundle.writer import seal, staged_bundle
from dragoman_export.card import write_card
from dragoman_export.contract import shortlist_memory, tensor_contract
from dragoman_export.graph_files import write_graphs
from dragoman_export.int8 import quantize
from dragoman_export.onnx_stepper import OnnxStepper
from dragoman_export.parity import Parity, ParityGate
from dragoman_export.recipe_file import RECIPE_FILE, recipe_toml
from dragoman_export.regroup import write_regroup_graph
from dragoman_export.shortlist import ShortlistOptions, build_shortlist
from dragoman_export.shortlist_graphs import make_shortlist_graphs
from dragoman_export.shortlist_stepper import ShortlistStepper
from dragoman_export.subject import Subject, subject_of
from dragoman_export.trace import Graphs, trace
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.corpus import Corpus
from dragoman_training.models import Seq2Seq


def export_bundle(
    checkpoint: Checkpoint,
    destination: Path,
    *,
    name: str,
    version: str,
    precisions: Sequence[str],
    overwrite: bool = False,
    shortlist_corpus: Corpus | None = None,
    shortlist_options: ShortlistOptions | None = None,
    report: Callable[[str], None],
) -> Bundle:
    """Writes a bundle of a checkpoint, as `export_subject` does.

    A lexical shortlist is learnt from `shortlist_corpus`; without one the bundle has none.
    """
    build = None
    if shortlist_corpus is not None:
        options = shortlist_options or ShortlistOptions()
        build = partial(build_shortlist, checkpoint, shortlist_corpus, options, report)
    return export_subject(
        subject_of(checkpoint),
        destination,
        name=name,
        version=version,
        precisions=precisions,
        overwrite=overwrite,
        build_shortlist=build,
        report=report,
    )


def export_subject(
    subject: Subject,
    destination: Path,
    *,
    name: str,
    version: str,
    precisions: Sequence[str],
    overwrite: bool = False,
    build_shortlist: Callable[[], Shortlist] | None = None,
    report: Callable[[str], None],
) -> Bundle:
    """Writes a bundle and opens it. `report` is told, line by line, what is being done and found.

    Raises ParityError where the graphs do not decode as PyTorch does, BundleError where the destination holds
    something and `overwrite` is not set or name or version can't be one. The destination is then as it was.
    """
    check_name("name", name)
    check_name("version", version)
    source, target = subject.source_tokenizer, subject.target_tokenizer
    with staged_bundle(destination, overwrite=overwrite) as folder:
        report("decoding with PyTorch")
        gate = ParityGate(
            subject.model,
            subject.decoding,
            source_vocabulary=source.vocabulary_size,
            source_ids=_special_ids(source),
            target_ids=_special_ids(target),
        )
        report("making the graphs")
        graphs = make_graphs(subject.model, precisions)
        shortlist_graphs = {}
        if build_shortlist is not None:
            shortlist_graphs = {precision: make_shortlist_graphs(each) for precision, each in graphs.items()}
        contract = tensor_contract(graphs)
        parities: dict[str, Parity] = {}
        for precision in precisions:
            report(f"{precision}: decoding with onnxruntime")
            write_graphs(graphs[precision], folder / precision, shortlist_graphs.get(precision))
            write_regroup_graph(contract, precision, folder / precision)
            stepper = OnnxStepper(
                folder / precision,
                vocabulary_size=target.vocabulary_size,
                source_pad_id=source.pad_id,
                bos_id=target.bos_id,
                eos_id=target.eos_id,
            )
            parities[precision] = gate.check(stepper, precision)
            report(f"{precision}: {parities[precision].describe()}")
            if precision in shortlist_graphs:
                with_shortlist = ShortlistStepper(
                    folder / precision,
                    vocabulary_size=target.vocabulary_size,
                    source_pad_id=source.pad_id,
                    bos_id=target.bos_id,
                    eos_id=target.eos_id,
                )
                found = gate.check_shortlist(with_shortlist, precision)
                report(f"{precision} with candidates: {found.describe()}")
        if build_shortlist is not None:
            build_shortlist().save(folder / SHORTLIST_FILE)
        tokenizers = (
            {"shared.spm": source} if source is target else {"source.spm": source, "target.spm": target}
        )
        for file, tokenizer in tokenizers.items():
            (folder / file).write_bytes(tokenizer.model)
        pieces = _write_vocabularies(folder, source, target)
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            name=name,
            version=version,
            source_language=subject.source_language,
            target_language=subject.target_language,
            architecture=_architecture(subject),
            source_vocabulary=source.vocabulary_size,
            target_vocabulary=target.vocabulary_size,
            source_ids=_special_ids(source),
            target_ids=_special_ids(target),
            source_tokenizer=next(iter(tokenizers)),
            target_tokenizer=next(reversed(tokenizers)),
            contract=contract,
            decoding=DecodingDefaults(**dataclasses.asdict(subject.decoding)),
            precisions=tuple(precisions),
            quality=(),
            licence=subject.card.licence,
            credit=subject.card.credit,
            files={},
            shortlist=ShortlistSpec(file=SHORTLIST_FILE, memory=shortlist_memory(shortlist_graphs))
            if shortlist_graphs
            else None,
            source_pieces=pieces[0],
            target_pieces=pieces[1],
        )
        if subject.recipe is not None:
            (folder / RECIPE_FILE).write_text(recipe_toml(subject.recipe), encoding="utf-8")
        (folder / CARD_FILE).write_text(write_card(manifest, subject, parities), encoding="utf-8")
        seal(folder, manifest)
    return open_bundle(destination)


def make_graphs(model: Seq2Seq, precisions: Sequence[str]) -> dict[str, Graphs]:
    """The graphs of a model in each of the precisions "fp32", "int8" and "fp16" that is asked for."""
    graphs: dict[str, Graphs] = {}
    if "fp32" in precisions or "int8" in precisions:
        graphs["fp32"] = trace(model)
        graphs["int8"] = Graphs(quantize(graphs["fp32"].encoder), quantize(graphs["fp32"].decoder_step))
    if "fp16" in precisions:
        graphs["fp16"] = trace(model, dtype=torch.float16)
    return {precision: graphs[precision] for precision in precisions}


def _special_ids(tokenizer: Tokenizer) -> SpecialIds:
    return SpecialIds(pad=tokenizer.pad_id, unk=tokenizer.unk_id, bos=tokenizer.bos_id, eos=tokenizer.eos_id)


def _write_vocabularies(folder: Path, source: Tokenizer, target: Tokenizer) -> tuple[str | None, str | None]:
    """Writes the pieces' ids where they are not the tokenizers' own; returns the files of both sides."""
    if not isinstance(source, VocabularyTokenizer) or not isinstance(target, VocabularyTokenizer):
        return None, None
    same = source.vocabulary == target.vocabulary
    files = ("vocab.json", "vocab.json") if same else ("source.vocab.json", "target.vocab.json")
    for file, tokenizer in zip(files, (source, target), strict=True):
        (folder / file).write_bytes(tokenizer.vocabulary)
    return files


def _architecture(subject: Subject) -> Architecture:
    """Family and sizes, as the recipe gives them."""
    sizes = dataclasses.asdict(subject.config)
    family = sizes.pop("family")
    return Architecture(
        family=family,
        parameters=sum(parameter.numel() for parameter in subject.model.parameters()),
        description=", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sizes.items()),
    )
