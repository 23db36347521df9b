"""The systems that are compared: opens each and translates with it."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from dragoman_bundle import Bundle

from benchmarks.decode.tutorial import Tutorial
from benchmarks.engines import SystemMissingError, open_decoder, running_system
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.decoding.translator import Translator

SYSTEMS = (
    "tutorial",
    "torch_batched",
    "onnx_static",
    "engine_fp32",
    "engine_int8",
    "engine_int8_shortlist",
)
"""In the order of the table; `--help` says what each is."""
TORCH_SYSTEMS = ("tutorial", "torch_batched")
_ONE_BATCH = "onnx_static"
"""The threads of this one are those of a call; the engine has a batch for each of its threads."""
_GRAPHS = {
    "onnx_static": ("fp32", False),
    "engine_fp32": ("fp32", False),
    "engine_int8": ("int8", False),
    "engine_int8_shortlist": ("int8", True),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One system in one setting."""

    system: str
    beam: int
    threads: int

    def __str__(self) -> str:
        return f"{self.system}, beam {self.beam}, threads {self.threads}"


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A file that was translated."""

    seconds: float
    lines: list[str]


class Systems:
    """Opens what each case needs, once."""

    def __init__(self, bundle: Bundle, checkpoint: Path | None) -> None:
        self._bundle = bundle
        self._checkpoint_path = checkpoint
        self._checkpoint: Checkpoint | None = None
        self._decoders: dict[tuple[str, bool, int], OnnxDecoder] = {}

    def open(self, case: Case) -> None:
        """Opens the case's model. Raises SystemMissingError where there is nothing to open."""
        if case.system == "tutorial" and case.beam != 1:
            raise SystemMissingError("it is greedy: beam 1 only")
        if case.system in TORCH_SYSTEMS:
            if self._checkpoint_path is None:
                raise SystemMissingError("it needs a checkpoint of training: give --checkpoint")
            if self._checkpoint is None:
                self._checkpoint = load_checkpoint(self._checkpoint_path)
            return
        precision, shortlist = _GRAPHS[case.system]
        key = (precision, shortlist, _call_threads(case))
        if key not in self._decoders:
            self._decoders[key] = open_decoder(
                self._bundle, precision=precision, num_threads=_call_threads(case), shortlist=shortlist
            )

    def translate(self, case: Case, lines: Sequence[str]) -> Translated:
        """Translates with an opened case, from text to text."""
        if case.system not in TORCH_SYSTEMS:
            precision, shortlist = _GRAPHS[case.system]
            with running_system(
                self._bundle,
                self._decoders[precision, shortlist, _call_threads(case)],
                beam_size=case.beam,
                threads=1 if case.system == _ONE_BATCH else case.threads,
                continuous=case.system != _ONE_BATCH,
            ) as system:
                started = time.perf_counter()
                translations = system.translate(lines)
                return Translated(seconds=time.perf_counter() - started, lines=translations)
        assert self._checkpoint is not None
        torch.set_num_threads(case.threads)
        translator = _torch_translator(case, self._checkpoint)
        started = time.perf_counter()
        translations = translator.translate(lines)
        return Translated(seconds=time.perf_counter() - started, lines=translations)


def _call_threads(case: Case) -> int:
    return case.threads if case.system == _ONE_BATCH else 1


def _torch_translator(case: Case, checkpoint: Checkpoint) -> Tutorial | Translator:
    if case.system == "tutorial":
        return Tutorial(checkpoint)
    decoding = dataclasses.replace(checkpoint.recipe.decoding, beam_size=case.beam)
    return Translator(checkpoint.model, checkpoint.source_tokenizer, checkpoint.target_tokenizer, decoding)
