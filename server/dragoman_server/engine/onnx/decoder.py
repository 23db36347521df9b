"""The decoder of a bundle's ONNX graphs.

Knows the graphs' contract and nothing of what they compute: tensors that begin with "memory." are fixed for a
sentence, those that begin with "state." pass from step to step. On a CPU its batches regroup in buffers of
the host, which copies least; on a GPU `device_model` takes over, where the bundle has the graph.

Shape suffixes: S sentences, K beam, T source positions.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.manifest import (
    ENCODER_GRAPH,
    REGROUP_GRAPH,
    SHORTLIST_GRAPH,
    SHORTLIST_STEP_GRAPH,
    STEP_GRAPH,
    Manifest,
)

from dragoman_server.engine.decoder import Batch, StepInput
from dragoman_server.engine.errors import DecoderError, DeviceUnavailableError, PrecisionUnavailableError
from dragoman_server.engine.onnx.batch import Encoded, OnnxBatch
from dragoman_server.engine.onnx.candidates import BatchCandidates, CandidateChooser
from dragoman_server.engine.onnx.device_model import DeviceEncoded, DeviceModel, Graphs
from dragoman_server.engine.onnx.session import PROVIDERS, check_device, open_session, shrinking
from dragoman_server.engine.onnx.tensors import pad_sources

_PREFERRED_PRECISIONS = {"cuda": ("fp16", "fp32"), "cpu": ("int8", "fp32")}

logger = logging.getLogger(__name__)


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
        shortlist: onnxruntime.InferenceSession | None,
        regroup: onnxruntime.InferenceSession | None = None,
        opener: Callable[[], "OnnxDecoder"],
    ) -> None:
        """With `regroup`, batches stay on the device."""
        self.opener = opener
        """Opens the same decoder once more, in whatever process: it can be pickled."""
        manifest = bundle.manifest
        self.device = device
        """Where the graphs run: "cpu" or "cuda"."""
        self.precision = precision
        """Precision of the graphs: "fp32", "fp16" or "int8"."""
        self.providers = {
            ENCODER_GRAPH: str(encoder.get_providers()[0]),
            STEP_GRAPH if shortlist is None else SHORTLIST_STEP_GRAPH: str(decoder_step.get_providers()[0]),
        }
        """For each graph, of the greedy search's decoder too, the onnxruntime provider it really runs on."""
        self.source_vocabulary = manifest.source_vocabulary
        self.target_vocabulary = manifest.target_vocabulary
        self.bos, self.eos = manifest.target_ids.bos, manifest.target_ids.eos
        self._pad = manifest.source_ids.pad
        self._contract = manifest.contract
        self._run_options: onnxruntime.RunOptions | None = None
        self._encoder = encoder
        self._decoder_step = decoder_step
        self._chooser: CandidateChooser | None = None
        self._candidate_axes: dict[str, int] = {}
        if shortlist is not None:
            assert bundle.shortlist is not None
            assert manifest.shortlist is not None
            # Not every precision has all of the tensors.
            self._candidate_axes = {
                spec.name: spec.shape.index("C")
                for spec in manifest.shortlist.memory
                if precision in spec.dtype
            }
            self.providers[SHORTLIST_GRAPH] = str(shortlist.get_providers()[0])
            names = list(self._candidate_axes)
            self._chooser = CandidateChooser(
                bundle.shortlist,
                lambda candidates_SC: dict(
                    zip(
                        names,
                        shortlist.run(names, {"candidates": candidates_SC}, self._run_options),
                        strict=True,
                    )
                ),
            )
        self._greedy: OnnxDecoder | None = None
        self._device_model: DeviceModel | None = None
        if regroup is not None:
            self.providers[REGROUP_GRAPH] = str(regroup.get_providers()[0])
            self._device_model = DeviceModel(
                bundle,
                Graphs(encoder=encoder, decoder_step=decoder_step, regroup=regroup, shortlist=shortlist),
                precision=precision,
                device=device,
                # A CPU computes every row that is padding, and has no trouble with shapes.
                pads=device != "cpu",
            )

    @property
    def stays_on_device(self) -> bool:
        """Whether running batches never leave the device, not even when sentences join."""
        return self._device_model is not None

    @property
    def has_shortlist(self) -> bool:
        """Whether sentences are kept to their candidates."""
        return self._chooser is not None

    def for_beam(self, beam_size: int) -> "OnnxDecoder":
        """As `Decoder.for_beam`: on a CPU a greedy search has no shortlist.

        At each step every sentence's own part of the output layer is read, and without a shortlist the whole
        layer, once for all: for a row a sentence that is less.
        """
        return self if beam_size > 1 or self._greedy is None else self._greedy

    @classmethod
    def open(
        cls,
        bundle: Bundle,
        *,
        device: str = "auto",
        precision: str = "auto",
        num_threads: int = 1,
        spins: bool = False,
        use_shortlist: bool = True,
        stays_on_device: bool | None = None,
        gpu_memory_limit_mib: int | None = None,
    ) -> "OnnxDecoder":
        """Opens the bundle's graphs and decodes a token with them.

        `device` is "cpu", "cuda", or "auto" for cuda where it works; `precision` "fp32", "fp16", "int8", or
        "auto" for the one that suits the device. A call on a CPU has `num_threads`, which wait by spinning if
        it `spins`. With `use_shortlist`, a bundle that has a shortlist is decoded with it. With
        `stays_on_device`, sentences join and leave by the bundle's graph "regroup" and not in buffers of the
        host; None is so on cuda, where the bundle has that graph. `gpu_memory_limit_mib` is the most MiB of
        GPU memory of each graph.
        Raises DeviceUnavailableError, PrecisionUnavailableError, or DecoderError where the graphs don't run.
        """

        def open_on(device: str) -> OnnxDecoder:
            return cls._open(
                bundle,
                device=device,
                precision=precision,
                num_threads=num_threads,
                spins=spins,
                use_shortlist=use_shortlist,
                stays_on_device=stays_on_device,
                gpu_memory_limit_mib=gpu_memory_limit_mib,
            )

        if device != "auto":
            try:
                return open_on(device)
            except PrecisionUnavailableError:
                # Without the device, graphs for it are not what is missing.
                check_device(device)
                raise
        name, present = bundle.manifest.key, bundle.manifest.precisions
        try:
            return open_on("cuda")
        except DeviceUnavailableError as error:
            logger.info("%s runs on the CPU: %s", name, error)
        except PrecisionUnavailableError:
            if precision != "auto":
                raise
            told = "%s runs on the CPU: %s graphs are for CPUs, and it has no others"
            logger.info(told, name, ", ".join(present))
        return open_on("cpu")

    @classmethod
    def _open(
        cls,
        bundle: Bundle,
        *,
        device: str,
        precision: str,
        num_threads: int,
        spins: bool,
        use_shortlist: bool,
        stays_on_device: bool | None,
        gpu_memory_limit_mib: int | None,
    ) -> "OnnxDecoder":
        if device not in PROVIDERS:
            raise DeviceUnavailableError(
                f"device {device!r} is unknown; there are auto, {', '.join(PROVIDERS)}"
            )
        chosen = choose_precision(bundle.path, bundle.manifest, device, precision)

        on_device = _stays_on_device(bundle, chosen, device, stays_on_device)

        def open_graph(graph: str) -> onnxruntime.InferenceSession:
            return open_session(
                bundle.graph_path(chosen, graph),
                device=device,
                num_threads=num_threads,
                spins=spins,
                gpu_memory_limit_mib=gpu_memory_limit_mib,
                may_leave_shapes=graph != REGROUP_GRAPH,
            )

        encoder = open_graph(ENCODER_GRAPH)
        regroup = open_graph(REGROUP_GRAPH) if on_device else None

        opener = partial(
            _open_again,
            bundle.path,
            device=device,
            precision=chosen,
            num_threads=num_threads,
            spins=spins,
            use_shortlist=use_shortlist,
            stays_on_device=stays_on_device,
            gpu_memory_limit_mib=gpu_memory_limit_mib,
        )

        def make(
            decoder_step: onnxruntime.InferenceSession, shortlist: onnxruntime.InferenceSession | None
        ) -> OnnxDecoder:
            decoder = cls(
                bundle,
                precision=chosen,
                device=device,
                encoder=encoder,
                decoder_step=decoder_step,
                shortlist=shortlist,
                regroup=regroup,
                opener=opener,
            )
            decoder._try_out()
            return decoder

        try:
            if not use_shortlist or bundle.shortlist is None:
                return make(open_graph(STEP_GRAPH), None)
            decoder = make(open_graph(SHORTLIST_STEP_GRAPH), open_graph(SHORTLIST_GRAPH))
            if device == "cpu":
                decoder._greedy = make(open_graph(STEP_GRAPH), None)
                decoder.providers |= decoder._greedy.providers
            return decoder
        except (DecoderError, DeviceUnavailableError):
            raise
        except Exception as error:
            reason = f"{bundle.path} cannot be run in {chosen} on {device}: {error}"
            raise (DecoderError if device == "cpu" else DeviceUnavailableError)(reason) from error

    def encode(self, sources: Sequence[Sequence[int]]) -> Encoded | DeviceEncoded:
        """As `Decoder.encode`."""
        if self._device_model is not None:
            return self._device_model.encode(sources)
        source_ST, length_S = pad_sources(
            sources, self._pad, num_sentences=len(sources), source_positions=max(map(len, sources))
        )
        memory = [spec.name for spec in self._contract.memory]
        state = [spec.name for spec in self._contract.state]
        given = {"source": source_ST, "source_length": length_S}
        arrays = self._encoder.run([*memory, *state], given, self._run_options)
        return Encoded(
            memory=dict(zip(memory, arrays, strict=False)),
            state=dict(zip(state, arrays[len(memory) :], strict=True)),
            num_sentences=len(sources),
            offer=None if self._chooser is None else self._chooser.choose(sources),
        )

    def open_batch(self, beam_size: int) -> Batch[Any]:
        """As `Decoder.open_batch`."""
        if self._device_model is not None:
            return self._device_model.open_batch(beam_size)
        candidates = None
        if self._chooser is not None:
            candidates = BatchCandidates(self._chooser, self._candidate_axes)
        return OnnxBatch(self._decoder_step, self._contract, candidates, self._run_options)

    def release_memory(self) -> None:
        """As `Decoder.release_memory`: on a CPU. A GPU's memory is its server's alone."""
        if self.device != "cpu":
            return
        self._run_options = shrinking()
        try:
            self._try_out()
        finally:
            self._run_options = None
        if self._greedy is not None:
            self._greedy.release_memory()

    def _try_out(self) -> None:
        """Decodes one token, which loads whatever the device loads late."""
        batch = self.open_batch(beam_size=1)
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


def _open_again(path: Path, **options: Any) -> OnnxDecoder:
    return OnnxDecoder.open(open_bundle(path), **options)


def choose_precision(path: Path, manifest: Manifest, device: str, precision: str) -> str:
    """Which graphs of the bundle at `path` run on "cpu" or "cuda". Raises PrecisionUnavailableError."""
    present = manifest.precisions
    wanted = _PREFERRED_PRECISIONS[device] if precision == "auto" else (precision,)
    for choice in wanted:
        if choice in present:
            return choice
    on = f", and {device} takes no others" if precision == "auto" else ""
    raise PrecisionUnavailableError(
        f"{path} has no {' or '.join(wanted)} graphs{on}; it has {', '.join(present)}"
    )


def _stays_on_device(bundle: Bundle, precision: str, device: str, wanted: bool | None) -> bool:
    has_graph = bundle.has_graph(precision, REGROUP_GRAPH)
    if wanted and not has_graph:
        raise DecoderError(
            f"{bundle.path} has no graph {REGROUP_GRAPH!r} in {precision}, without which no batch can stay "
            "on the device; export the model again"
        )
    if wanted is None and device != "cpu" and not has_graph:
        logger.warning(
            "%s has no graph %r: its batches pass through the host at every step; "
            "export the model again to keep it on the GPU",
            bundle.path,
            REGROUP_GRAPH,
        )
    return has_graph and (device != "cpu" if wanted is None else wanted)
