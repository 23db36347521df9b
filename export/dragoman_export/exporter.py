"""Checkpoint to bundle: trace, quantize, check against PyTorch, describe, and put in place.

Nothing appears at the destination unless the graphs of every precision pass the parity gate.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.manifest import (
    CARD_FILE,
    FORMAT_VERSION,
    Architecture,
    DecodingDefaults,
    Manifest,
    SpecialIds,
    check_name,
)
from dragoman_bundle.tokenizer import Tokenizer
from dragoman_bundle.writer import seal, staged_bundle
from dragoman_export.card import write_card
from dragoman_export.contract import tensor_contract
from dragoman_export.graph_files import write_graphs
from dragoman_export.int8 import quantize
from dragoman_export.onnx_stepper import OnnxStepper
from dragoman_export.parity import Parity, ParityGate
from dragoman_export.recipe_file import RECIPE_FILE, recipe_toml
from dragoman_export.trace import Graphs, trace
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.models import Seq2Seq


def export_bundle(
    checkpoint: Checkpoint,
    destination: Path,
    *,
    name: str,
    version: str,
    precisions: Sequence[str],
    overwrite: bool = False,
    report: Callable[[str], None],
) -> Bundle:
    """Writes a bundle and opens it. `report` is told, line by line, what is being done and found.

    Raises ParityError where the graphs do not decode as PyTorch does, BundleError where the destination holds
    something and `overwrite` is not set or name or version can't be one. The destination is then as it was.
    """
    check_name("name", name)
    check_name("version", version)
    source, target = checkpoint.source_tokenizer, checkpoint.target_tokenizer
    with staged_bundle(destination, overwrite=overwrite) as folder:
        report("decoding with PyTorch")
        gate = ParityGate(
            checkpoint.model,
            checkpoint.recipe.decoding,
            source_vocabulary=source.vocabulary_size,
            source_ids=_special_ids(source),
            target_ids=_special_ids(target),
        )
        report("making the graphs")
        graphs = make_graphs(checkpoint.model, precisions)
        parities: dict[str, Parity] = {}
        for precision in precisions:
            report(f"{precision}: decoding with onnxruntime")
            write_graphs(graphs[precision], folder / precision)
            stepper = OnnxStepper(
                folder / precision,
                vocabulary_size=target.vocabulary_size,
                source_pad_id=source.pad_id,
                bos_id=target.bos_id,
                eos_id=target.eos_id,
            )
            parities[precision] = gate.check(stepper, precision)
            report(f"{precision}: {parities[precision].describe()}")
        tokenizers = (
            {"shared.spm": source} if source is target else {"source.spm": source, "target.spm": target}
        )
        for file, tokenizer in tokenizers.items():
            (folder / file).write_bytes(tokenizer.model)
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            name=name,
            version=version,
            source_language=checkpoint.recipe.data.source_language,
            target_language=checkpoint.recipe.data.target_language,
            architecture=_architecture(checkpoint),
            source_vocabulary=source.vocabulary_size,
            target_vocabulary=target.vocabulary_size,
            source_ids=_special_ids(source),
            target_ids=_special_ids(target),
            source_tokenizer=next(iter(tokenizers)),
            target_tokenizer=next(reversed(tokenizers)),
            contract=tensor_contract(graphs),
            decoding=DecodingDefaults(**dataclasses.asdict(checkpoint.recipe.decoding)),
            precisions=tuple(precisions),
            quality=(),
            licence=checkpoint.recipe.card.licence,
            credit=checkpoint.recipe.card.credit,
            files={},
        )
        (folder / RECIPE_FILE).write_text(recipe_toml(checkpoint.recipe), encoding="utf-8")
        (folder / CARD_FILE).write_text(write_card(manifest, checkpoint, parities), encoding="utf-8")
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


def _architecture(checkpoint: Checkpoint) -> Architecture:
    """Family and sizes, as the recipe gives them."""
    sizes = dataclasses.asdict(checkpoint.recipe.model)
    family = sizes.pop("family")
    return Architecture(
        family=family,
        parameters=sum(parameter.numel() for parameter in checkpoint.model.parameters()),
        description=", ".join(f"{name.replace('_', ' ')} {value}" for name, value in sizes.items()),
    )
