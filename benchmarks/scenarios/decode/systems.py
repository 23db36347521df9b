"""The systems that are compared: opens each and translates with it."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from dragoman_bundle import Bundle

from benchmarks.engines import open_decoder, running_system
from benchmarks.measuring import MeasurementError
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.decoding.translator import Translator


@dataclass(frozen=True)
class Graphs:
    """How the engine runs as a system."""

    precision: str
    shortlist: bool = False
    is_wide: bool = False
    """Whether there is a single engine whose calls have all threads, and not one for each thread."""
    is_continuous: bool = True


SYSTEMS = {
    "torch_batched": None,
    "onnx_static": Graphs("fp32", is_wide=True, is_continuous=False),
    "engine_fp32": Graphs("fp32"),
    "engine_int8": Graphs("int8"),
    "engine_int8_wide": Graphs("int8", is_wide=True),
    "engine_int8_shortlist": Graphs("int8", shortlist=True),
    "engine_fp16": Graphs("fp16"),
}
"""In the order of the table; `--help` says what each is. None: in PyTorch."""


@dataclass(frozen=True)
class Case:
    """One system in one setting."""

    system: str
    beam: int
    threads: int

    def __str__(self) -> str:
        return f"{self.system}, beam {self.beam}, threads {self.threads}"


@dataclass(frozen=True)
class Translated:
    """A file that was translated."""

    seconds: float
    lines: list[str]


class Systems:
    """Opens what each case needs, once."""

    def __init__(self, bundle: Bundle, checkpoint: Path | None, device: str) -> None:
        """`device`: where the engine runs. Raises CheckpointError for a checkpoint that is none."""
        self._bundle = bundle
        self._device = device
        self._checkpoint = None if checkpoint is None else load_checkpoint(checkpoint)
        self._decoders: dict[tuple[Graphs, int], OnnxDecoder] = {}

    def open(self, case: Case) -> None:
        """Opens the case's model. Raises MeasurementError where there is nothing to open."""
        if (graphs := SYSTEMS[case.system]) is None:
            if self._checkpoint is None:
                raise MeasurementError("it needs a checkpoint of training: give --checkpoint")
        elif graphs.is_wide and case.threads == 1 and graphs.is_continuous:
            raise MeasurementError("with one thread it is the engine as ever")
        elif graphs.precision == "fp16" and self._device == "cpu":
            raise MeasurementError("it runs on a GPU: give --device cuda")
        elif (graphs, case.threads) not in self._decoders:
            self._decoders[graphs, case.threads] = open_decoder(
                self._bundle,
                precision=graphs.precision,
                num_threads=case.threads if graphs.is_wide else 1,
                shortlist=graphs.shortlist,
                device=self._device,
            )

    def translate(self, case: Case, lines: Sequence[str]) -> Translated:
        """Translates with an opened case, from text to text."""
        if (graphs := SYSTEMS[case.system]) is not None:
            with running_system(
                self._bundle,
                self._decoders[graphs, case.threads],
                beam_size=case.beam,
                threads=1 if graphs.is_wide else case.threads,
                continuous=graphs.is_continuous,
            ) as system:
                started = time.perf_counter()
                translations = system.translate(lines)
                return Translated(time.perf_counter() - started, translations)
        assert self._checkpoint is not None
        torch.set_num_threads(case.threads)
        checkpoint = self._checkpoint
        decoding = dataclasses.replace(checkpoint.recipe.decoding, beam_size=case.beam)
        tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
        translator = Translator(checkpoint.model, *tokenizers, decoding)
        started = time.perf_counter()
        translations = translator.translate(lines)
        return Translated(time.perf_counter() - started, translations)
