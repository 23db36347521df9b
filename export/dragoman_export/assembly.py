"""A subject to a bundle: graphs are made, quantized, held against a reference, described and put in place.

Nothing appears at the destination unless the graphs of every precision pass the parity gate. Whether there is
room in memory is said before it is tried: an estimate of the sizes of files and of what exports of several
sizes took. Must know no PyTorch: a model tells its own graphs and reference.
"""

import json
import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import prod
from pathlib import Path

import onnx_ir as ir
from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.errors import check_language, check_name
from dragoman_bundle.manifest import CARD_FILE, SHORTLIST_FILE, ShortlistSpec
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.writer import seal, staged_bundle

from dragoman_export.bundle_files import (
    make_manifest,
    recipe_files,
    shortlist_memory,
    special_ids,
    tensor_contract,
    write_graphs,
    write_tokenizers,
)
from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.regroup import write_regroup_graph
from dragoman_export.graphs.transformer import takes_kernels
from dragoman_export.int8.calibration import Steps, find_steps, with_known_steps
from dragoman_export.int8.quantize import bounded_states, quantize
from dragoman_export.model import ExportedModel, Subject
from dragoman_export.model_card import write_card
from dragoman_export.parity.gate import Parity, ParityGate
from dragoman_export.parity.loss import ParityError
from dragoman_export.parity.onnx_stepper import OnnxStepper, ShortlistStepper
from dragoman_export.parity.sentences import CheckText, text_sources
from dragoman_export.shortlist.graphs import make_shortlist_graphs

Report = Callable[[str], None]


class Stages:
    """Tells each stage before it begins, as `[3/9] fp32: making the graphs`, and what was found as it is."""

    def __init__(self, precisions: Sequence[str], *, has_shortlist: bool, report: Report) -> None:
        traces = bool({"fp32", "int8"} & set(precisions)) + ("fp16" in precisions)
        per_precision = 3 if has_shortlist else 2
        total = 1 + traces + ("int8" in precisions) + has_shortlist + per_precision * len(precisions)
        self._numbers = (f"[{number}/{total}]" for number in range(1, total + 1))
        self.tell = report

    def begin(self, stage: str) -> None:
        self.tell(f"{next(self._numbers)} {stage}")


def export_subject(
    subject: Subject,
    destination: Path,
    *,
    precisions: Sequence[str],
    overwrite: bool = False,
    build_shortlist: Callable[[], Shortlist] | None = None,
    check_text: CheckText | None = None,
    report: Report,
) -> Bundle:
    """Writes a bundle and opens it. `report` is told, line by line, what is being done and found.

    Graphs of lower precisions are checked on `check_text`, or where there is none on samples of the model's.

    Raises ParityError where the graphs do not decode as their reference does, BundleError where the
    destination holds something and `overwrite` is not set, or where name, version or a language can't be one.
    The destination is then as it was.
    """
    name, version = destination.parent.name, destination.name
    check_name("name", name)
    check_name("version", version)
    check_language("the source language", subject.source_language)
    check_language("the target language", subject.target_language)
    source, target = subject.source_tokenizer, subject.target_tokenizer
    stages = Stages(precisions, has_shortlist=build_shortlist is not None, report=report)
    with staged_bundle(destination, overwrite=overwrite) as folder:
        # First, as text that teaches nothing is refused: the graphs take minutes.
        learnt = build_shortlist and build_shortlist()
        stages.begin("decoding with the reference")
        gate = ParityGate(
            subject.model.reference(),
            subject.decoding,
            source_vocabulary=source.vocabulary_size,
            source_ids=special_ids(source),
            target_ids=special_ids(target),
            source_end=subject.source_end,
            text=None if check_text is None else text_sources(check_text, subject),
            start=subject.checked_start,
        )
        find = None
        if subject.model.is_transformer:
            open_stepper = partial(OnnxStepper.between, source, target)
            find = partial(find_steps, words=gate.words, open_stepper=open_stepper)
        graphs = make_graphs(subject.model, precisions, stages.begin, find)
        shortlist_graphs = {}
        if learnt is not None:
            stages.begin("making the graphs of the shortlist")
            shortlist_graphs = {precision: make_shortlist_graphs(pair) for precision, pair in graphs.items()}
        contract = tensor_contract(graphs)
        parities: dict[str, Parity] = {}
        for precision in precisions:
            stages.begin(f"{precision}: writing the graphs")
            write_graphs(graphs[precision], folder / precision, shortlist_graphs.get(precision))
            write_regroup_graph(contract, precision, folder / precision)
            try:
                has_shortlist = precision in shortlist_graphs
                parities[precision] = _check(gate, subject, folder / precision, has_shortlist, stages)
            except ParityError as error:
                raise ParityError(f"{error}{_way_out(precision, parities, precisions)}") from error
        shortlist = None
        if learnt is not None:
            learnt.save(folder / SHORTLIST_FILE)
            shortlist = ShortlistSpec(file=SHORTLIST_FILE, memory=shortlist_memory(shortlist_graphs))
        manifest = make_manifest(
            subject,
            destination,
            precisions=precisions,
            contract=contract,
            tokenizers=write_tokenizers(folder, source, target),
            shortlist=shortlist,
        )
        for file, recipe in zip(recipe_files(subject.recipes), subject.recipes, strict=True):
            (folder / file).write_text(recipe, encoding="utf-8")
        (folder / CARD_FILE).write_text(write_card(manifest, subject, parities, check_text), encoding="utf-8")
        seal(folder, manifest)
    return open_bundle(destination)


def _check(gate: ParityGate, subject: Subject, folder: Path, has_shortlist: bool, stages: Stages) -> Parity:
    """Holds a precision's graphs against the reference, those of a shortlist too. Raises ParityError."""
    tokenizers = subject.source_tokenizer, subject.target_tokenizer
    stages.begin(f"{folder.name}: decoding with onnxruntime")
    parity = gate.check(OnnxStepper.between(*tokenizers, folder), folder.name)
    stages.tell(f"{folder.name}: {parity.describe()}")
    if has_shortlist:
        stages.begin(f"{folder.name} with candidates: decoding with onnxruntime")
        found = gate.check_shortlist(ShortlistStepper.between(*tokenizers, folder), folder.name)
        stages.tell(f"{folder.name} with candidates: {found.describe()}")
    return parity


def _way_out(refused: str, passed: Collection[str], precisions: Sequence[str]) -> str:
    """What to export instead; nothing for fp32, where what is refused is no matter of rounding."""
    if refused == "fp32":
        return ""
    finding = f"{','.join(passed)} passed" if passed else "fp32 rounds nothing"
    remaining = [precision for precision in precisions if precision != refused] if passed else ["fp32"]
    return f". {finding}: export with --precisions {','.join(remaining)}"


def make_graphs(
    model: ExportedModel,
    precisions: Sequence[str],
    report: Report = lambda line: None,
    find: Callable[[Graphs], Steps] | None = None,
) -> dict[str, Graphs]:
    """The graphs of a model in each of the precisions "fp32", "int8" and "fp16" that is asked for.

    `report` is told which one is made before it is. `find` finds, in the fp32 graphs, the steps of int8 that
    rows share; without it each row has its own.
    """
    graphs: dict[str, Graphs] = {}
    if "fp32" in precisions or "int8" in precisions:
        report("fp32: making the graphs")
        for_cpu = "int8" in precisions and takes_kernels(model.imported)
        if "fp32" in precisions or not for_cpu:
            graphs["fp32"] = exact = model.graphs()
        if for_cpu:
            exact = model.graphs(for_cpu=True)
    if "int8" in precisions:
        report("int8: quantizing the graphs")
        states = bounded_states(exact.encoder.graph, exact.decoder_step.graph)
        steps = Steps({}, {}) if find is None else find(exact)
        stored = {} if model.imported is None else model.imported.stored
        if model.imported is not None:
            steps = with_known_steps(exact, steps, model.imported.steps)
        graphs["int8"] = Graphs(
            quantize(exact.encoder, steps=steps.encoder, stored=stored),
            quantize(exact.decoder_step, states, steps.decoder_step, stored),
        )
    if "fp16" in precisions:
        report("fp16: making the graphs")
        graphs["fp16"] = model.graphs(dtype=ir.DataType.FLOAT16)
    return {precision: graphs[precision] for precision in precisions}


WITH_PYTORCH, WITHOUT_PYTORCH = (700 << 20, 7), (320 << 20, 5)
"""What an export takes at its largest: bytes for a model that takes nothing, and copies of the weights as
float32: the checkpoint's, the reference's, those rounded to eight bits, those of graphs, and what onnxruntime
packs of them. Without PyTorch 1.73 GB were taken by three precisions of weights of 0.31 GB, 0.61 of 0.07."""


class MemoryTooSmallError(ValueError):
    """There is less memory than an export of this checkpoint takes."""


def check_memory(checkpoints: Sequence[Path], available: int | None, need: tuple[int, int]) -> None:
    """Raises MemoryTooSmallError where `available` bytes are too few; None stands for no known limit.

    A folder's largest file is its weights.
    """
    files = [[path] if path.is_file() else filter(Path.is_file, path.rglob("*")) for path in checkpoints]
    weights = [max(of_path, key=lambda file: file.stat().st_size, default=None) for of_path in files]
    weight_bytes = sum(map(float32_bytes, filter(None, weights)))
    needed = need[0] + need[1] * weight_bytes
    if available is None or needed <= available:
        return
    names = " and ".join(str(path) for path in checkpoints)
    raise MemoryTooSmallError(
        f"{names} holds {weight_bytes / 1e9:.1f} GB of weights as float32, whose export takes about "
        f"{needed / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are available: make room, take a "
        "larger machine, or say with --max-memory how many GB it may take"
    )


def float32_bytes(file: Path) -> int:
    """Bytes of a file's weights as float32: those its header tells of, or else its size."""
    if file.suffix != ".safetensors":
        return os.stat(file).st_size
    try:
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
        return 4 * sum(map(prod, shapes))
    except (ValueError, KeyError, TypeError, AttributeError, MemoryError, OverflowError):
        # What is damaged is told of by what reads it.
        return os.stat(file).st_size
