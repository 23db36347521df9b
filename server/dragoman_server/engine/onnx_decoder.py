"""The decoder of a bundle's ONNX graphs.

The only user of onnxruntime, with `onnx_session`. Knows the graphs' contract and nothing of what they
compute: tensors that begin with "memory." are fixed for a sentence, those that begin with "state." pass from
step to step on the device.

Shape suffixes: S sentences, K beam, T source positions.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from dragoman_bundle.bundle import Bundle
from dragoman_bundle.manifest import GRAPHS, TensorContract
from dragoman_server.engine.decoder import IntArray, StepInput, StepOutput
from dragoman_server.engine.errors import DecoderError, DeviceUnavailableError, PrecisionUnavailableError
from dragoman_server.engine.onnx_session import PROVIDERS, open_session
from dragoman_server.engine.processors import count_processors
from dragoman_server.engine.tensors import Array, Memory, join_rows

_PREFERRED_PRECISIONS = {"cuda": ("fp16", "fp32"), "cpu": ("int8", "fp32")}
_RESULTS = ("top_score", "top_index", "forced_score")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """What the encoder made of a group of sentences, on the host."""

    memory: Mapping[str, Array]
    state: Mapping[str, Array]
    num_sentences: int


class OnnxBatch:
    """A running batch of ONNX graphs. Implements `Batch`."""

    def __init__(self, session: onnxruntime.InferenceSession, contract: TensorContract, device: str) -> None:
        self._session = session
        self._device = device
        self._buffers = {spec.name: Memory(_axis(spec.shape, "T")) for spec in contract.memory}
        self._growth_axis = {spec.name: spec.growth_axis for spec in contract.state}
        self._memory: dict[str, OrtValue] = {}
        self._state: dict[str, OrtValue] = {}
        self._age_S = np.empty(0, np.int64)

    def regroup(self, origin_S: IntArray, joined: Sequence[Encoded], source_positions: int) -> None:
        """As `Batch.regroup`. On a GPU the tensors that change pass through the host."""
        for name, buffer in self._buffers.items():
            buffer.regroup(origin_S, [encoded.memory[name] for encoded in joined], source_positions)
            self._memory[name] = OrtValue.ortvalue_from_numpy(buffer.array, self._device)
        num_joined = sum(encoded.num_sentences for encoded in joined)
        self._age_S = np.concatenate([self._age_S, np.zeros(num_joined, np.int64)])[origin_S]
        if joined:
            max_age = int(self._age_S.max())
            for name, growth_axis in self._growth_axis.items():
                arrays = [encoded.state[name] for encoded in joined]
                if name in self._state:
                    rows = join_rows(self._state[name].numpy(), arrays, growth_axis, max_age)
                else:
                    rows = np.concatenate(arrays)
                self._state[name] = OrtValue.ortvalue_from_numpy(rows, self._device)

    def step(self, rows: StepInput) -> StepOutput:
        """As `Batch.step`. States stay on the device; only the candidates come to the host."""
        results = (*_RESULTS, "attention") if rows.wants_attention else _RESULTS
        # A new binding each time: the outputs of one are views into it that its next run would overwrite.
        binding = self._session.io_binding()
        for name, array in (
            ("token", rows.token_SK),
            ("parent", rows.parent_SK),
            ("score", rows.score_SK),
            ("forced", rows.forced_SK),
        ):
            binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(array))
        for name, value in (*self._memory.items(), *self._state.items()):
            binding.bind_ortvalue_input(name, value)
        for name in results:
            binding.bind_output(name)
        for name in self._state:
            binding.bind_output(f"next_{name}", self._device)
        self._session.run_with_iobinding(binding)
        outputs = binding.get_outputs()
        arrays = {name: value.numpy() for name, value in zip(results, outputs, strict=False)}
        self._state = dict(zip(self._state, outputs[len(results) :], strict=True))
        self._age_S = self._age_S + 1
        return StepOutput(
            top_score_SC=arrays["top_score"],
            top_index_SC=arrays["top_index"],
            forced_score_SK=arrays["forced_score"],
            attention_SKT=arrays.get("attention"),
        )


class OnnxDecoder:
    """A bundle's encoder and decoder step on a device. Implements `Decoder`."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        precision: str,
        device: str,
        encoder: onnxruntime.InferenceSession,
        decoder_step: onnxruntime.InferenceSession,
    ) -> None:
        manifest = bundle.manifest
        self.precision = precision
        """Precision of the graphs: "fp32", "fp16" or "int8"."""
        self.providers = {
            "encoder": str(encoder.get_providers()[0]),
            "decoder_step": str(decoder_step.get_providers()[0]),
        }
        """For each graph the onnxruntime provider that it really runs on."""
        self.source_vocabulary = manifest.source_vocabulary
        self.target_vocabulary = manifest.target_vocabulary
        self.bos, self.eos = manifest.target_ids.bos, manifest.target_ids.eos
        self._pad = manifest.source_ids.pad
        self._contract = manifest.contract
        self._device = device
        self._encoder = encoder
        self._decoder_step = decoder_step

    @classmethod
    def open(
        cls, bundle: Bundle, *, device: str = "auto", precision: str = "auto", num_threads: int | None = None
    ) -> "OnnxDecoder":
        """Opens the bundle's graphs and decodes a token with them.

        `device` is "cpu", "cuda", or "auto" for cuda where it works; `precision` "fp32", "fp16", "int8", or
        "auto" for the one that suits the device; `num_threads` as many as there are processors to use.
        Raises DeviceUnavailableError, PrecisionUnavailableError, or DecoderError where the graphs don't run.
        """
        if device != "auto":
            return cls._open(bundle, device, precision, num_threads or count_processors())
        try:
            return cls._open(bundle, "cuda", precision, num_threads or count_processors())
        except (DeviceUnavailableError, PrecisionUnavailableError) as error:
            # A bundle may hold nothing but what suits a CPU.
            logger.info("running on the CPU: %s", error)
            return cls._open(bundle, "cpu", precision, num_threads or count_processors())

    @classmethod
    def _open(cls, bundle: Bundle, device: str, precision: str, num_threads: int) -> "OnnxDecoder":
        if device not in PROVIDERS:
            raise DeviceUnavailableError(
                f"device {device!r} is unknown; there are auto, {', '.join(PROVIDERS)}"
            )
        chosen = _choose_precision(bundle, device, precision)
        encoder, decoder_step = (
            open_session(bundle.graph_path(chosen, graph), device=device, num_threads=num_threads)
            for graph in GRAPHS
        )
        decoder = cls(bundle, precision=chosen, device=device, encoder=encoder, decoder_step=decoder_step)
        try:
            decoder._try_out()
        except Exception as error:
            reason = f"{bundle.path} cannot be run in {chosen} on {device}: {error}"
            raise (DecoderError if device == "cpu" else DeviceUnavailableError)(reason) from error
        return decoder

    def encode(self, sources: Sequence[Sequence[int]]) -> Encoded:
        """As `Decoder.encode`."""
        lengths_S = np.array([len(source) for source in sources], np.int64)
        source_ST = np.full((len(sources), lengths_S.max()), self._pad, np.int64)
        for row_T, source in zip(source_ST, sources, strict=True):
            row_T[: len(source)] = source
        memory = [spec.name for spec in self._contract.memory]
        state = [spec.name for spec in self._contract.state]
        arrays = self._encoder.run([*memory, *state], {"source": source_ST, "source_length": lengths_S})
        return Encoded(
            memory=dict(zip(memory, arrays, strict=False)),
            state=dict(zip(state, arrays[len(memory) :], strict=True)),
            num_sentences=len(sources),
        )

    def open_batch(self) -> OnnxBatch:
        """As `Decoder.open_batch`."""
        return OnnxBatch(self._decoder_step, self._contract, self._device)

    def _try_out(self) -> None:
        """Decodes one token, which loads whatever the device loads late."""
        batch = self.open_batch()
        batch.regroup(np.zeros(1, np.int64), [self.encode([[self._pad]])], 1)
        none_SK = np.zeros((1, 1), np.int64)
        batch.step(
            StepInput(
                token_SK=none_SK + self.bos,
                parent_SK=none_SK,
                score_SK=np.zeros((1, 1), np.float32),
                forced_SK=none_SK,
                wants_attention=True,
            )
        )


def _choose_precision(bundle: Bundle, device: str, precision: str) -> str:
    present = bundle.manifest.precisions
    wanted = _PREFERRED_PRECISIONS[device] if precision == "auto" else (precision,)
    for choice in wanted:
        if choice in present:
            return choice
    raise PrecisionUnavailableError(
        f"{bundle.path} has no {' or '.join(wanted)} graphs, which were asked for on {device}; "
        f"it has {', '.join(present)}"
    )


def _axis(shape: Sequence[int | str], symbol: str) -> int | None:
    return shape.index(symbol) if symbol in shape else None
