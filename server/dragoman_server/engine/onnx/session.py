"""Opens a graph on a device, makes sure that it runs there, and leaves its outputs where they are wanted.

Knows onnxruntime; knows nothing of what the graphs compute.
"""

import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from dragoman_bundle.decoding import SLOW_FUSIONS
from onnxruntime import OrtValue

from dragoman_server.engine.errors import DecoderError, DeviceUnavailableError
from dragoman_server.engine.onnx.tensors import Array

Sessions = Mapping[str, onnxruntime.InferenceSession]
"""A bundle's open graphs by name."""
CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
PROVIDERS = {"cpu": CPU_PROVIDER, "cuda": CUDA_PROVIDER}

# fmt: off
_HOST_OPERATORS = frozenset({
    "Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Equal", "Expand", "Gather", "Identity",
    "Less", "Mul", "Range", "Reshape", "Shape", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze", "Where",
})
# fmt: on
"""Operators that onnxruntime puts on the CPU to work out shapes, which a GPU would only wait for."""
_AS_REQUESTED = 1
"""onnxruntime's number for an arena that grows by what is asked for."""
_has_common_arena = False
_common_arena_lock = threading.Lock()


def installed() -> tuple[str, list[str]]:
    """onnxruntime's version, and the providers of this build."""
    return onnxruntime.__version__, onnxruntime.get_available_providers()


@dataclass(frozen=True, kw_only=True)
class DecoderOptions:
    """The options of a decoder. It can be pickled, for another process to open the same decoder."""

    device: str = "auto"
    """"cpu", "cuda", or "auto" for cuda where it works."""
    precision: str = "auto"
    """"fp32", "fp16", "int8", or "auto" for the one that suits the device."""
    num_threads: int = 1
    """Threads of a run on a CPU."""
    spins: bool = False
    """Whether these wait for each other by spinning, which is quicker to wake and takes processor time from
    everyone else."""
    use_shortlist: bool = True
    """Whether a bundle that has a shortlist is decoded with it."""
    stays_on_device: bool | None = None
    """Whether sentences join and leave by the bundle's graph "regroup" and not in buffers of the host; None:
    on cuda, where the bundle has that graph."""
    gpu_memory_limit_mib: int | None = None
    """Most MiB of GPU memory that each graph's arena takes for weights and tensors, and what needs more
    fails; None: what the GPU has."""


def open_session(
    path: Path, options: DecoderOptions, *, may_leave_shapes: bool = True
) -> onnxruntime.InferenceSession:
    """A session of the graph on the options' device, "cpu" or "cuda".

    Each session has an arena of GPU memory of its own, which keeps what it once took. Unless
    `may_leave_shapes`, every single node must be on the device.

    Raises DeviceUnavailableError where onnxruntime cannot use the device or would leave part of the graph's
    arithmetic to another one, and DecoderError where the graph cannot be loaded at all.
    """
    device, provider = options.device, PROVIDERS[options.device]
    if provider not in onnxruntime.get_available_providers():
        raise _unusable(device)
    if provider == CUDA_PROVIDER:
        # CUDA's and cuDNN's libraries as installed by pip are not on the loader's path.
        onnxruntime.preload_dlls()
    # Some builds of onnxruntime report home what they load.
    onnxruntime.disable_telemetry_events()
    _make_common_arena()
    settings = onnxruntime.SessionOptions()
    # Errors alone: it warns of nodes elsewhere in lines that are no log of ours, and strays are judged below.
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.use_env_allocators", "1")
    settings.intra_op_num_threads = options.num_threads
    settings.inter_op_num_threads = 1
    # Hardly any shape comes twice: plans kept for each would only pile up.
    settings.enable_mem_pattern = False
    settings.add_session_config_entry("session.intra_op.allow_spinning", "1" if options.spins else "0")
    settings.add_session_config_entry("session.inter_op.allow_spinning", "0")
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        session = onnxruntime.InferenceSession(
            path,
            settings,
            providers=[_with_options(provider, options.gpu_memory_limit_mib)],
            disabled_optimizers=SLOW_FUSIONS[options.device],
        )
    except Exception as error:
        reason = f"{device} cannot run {path}: {error}"
        raise (DecoderError if provider == CPU_PROVIDER else DeviceUnavailableError)(reason) from error
    session.disable_fallback()
    if session.get_providers()[0] != provider:
        if not _has_driver():
            raise _unusable(device)
        raise DeviceUnavailableError(
            f"{device} cannot be used: onnxruntime fell back to {session.get_providers()[0]}; "
            "its own message above says what is missing"
        )
    if strays := find_strays(session, provider, may_leave_shapes=may_leave_shapes):
        raise DeviceUnavailableError(f"{device} cannot run all of {path}: elsewhere are {', '.join(strays)}")
    return session


def _make_common_arena() -> None:
    """The arena of host memory that all sessions of the process allocate from.

    What one step has given back another takes, of whichever graph and engine. It grows by what is asked for:
    doubling, as onnxruntime does by itself, would hold up to twice the largest batch.
    """
    global _has_common_arena
    with _common_arena_lock:
        if not _has_common_arena:
            kind, use = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
            memory = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, use)
            arena = onnxruntime.OrtArenaCfg(0, _AS_REQUESTED, -1, -1)
            onnxruntime.create_and_register_allocator(memory, arena)
            _has_common_arena = True


def shrinking() -> onnxruntime.RunOptions:
    """The same of a run on a CPU after which a session's arena holds no more than is in use.

    An arena keeps what it once took: without one there would be nothing to give back, and a large batch's
    step would take 5 to 7 percent longer.
    """
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


def check_device(device: str) -> None:
    """Raises DeviceUnavailableError where it shows without a graph that the device cannot be used.

    To explain what has failed: a driver that isn't found may still be there, and sessions open.
    """
    is_missing = device == "cuda" and not _has_driver()
    if is_missing or PROVIDERS[device] not in onnxruntime.get_available_providers():
        raise _unusable(device)


def find_strays(
    session: onnxruntime.InferenceSession, provider: str, *, may_leave_shapes: bool = True
) -> list[str]:
    """The nodes that are elsewhere than on the provider, as "name (operator)".

    With `may_leave_shapes`, operators that work out shapes don't count.
    """
    return [
        f"{node.name} ({node.op_type})"
        for subgraph in session.get_provider_graph_assignment_info()
        if subgraph.ep_name != provider
        for node in subgraph.get_nodes()
        if not (may_leave_shapes and node.op_type in _HOST_OPERATORS)
    ]


def _unusable(device: str) -> DeviceUnavailableError:
    reason = "no GPU here; auto takes the CPU where there is none"
    if _has_driver():
        without = f"the installed onnxruntime is built without {PROVIDERS[device]}"
        reason = f"{without}; put onnxruntime-gpu in its place"
    return DeviceUnavailableError(f"{device} cannot be used: {reason}")


def _has_driver() -> bool:
    """Whether NVIDIA's driver is here. Not every container that has it has its command, or on its path."""
    return shutil.which("nvidia-smi") is not None or Path("/dev/nvidiactl").exists()


def _with_options(provider: str, gpu_memory_limit_mib: int | None) -> tuple[str, dict[str, str]]:
    if provider == CPU_PROVIDER:
        return provider, {}
    # TF32 keeps ten bits of a factor: fp32 would not be what PyTorch computes on the CPU. The arena grows by
    # what is asked for and not by powers of two, which would pass a limit long before the memory is used.
    options = {"use_tf32": "0", "arena_extend_strategy": "kSameAsRequested"}
    if gpu_memory_limit_mib is not None:
        options["gpu_mem_limit"] = str(gpu_memory_limit_mib * 1024 * 1024)
    return provider, options


def run_bound(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, OrtValue | Array], outputs: Mapping[str, str]
) -> dict[str, OrtValue]:
    """The outputs by name, each on the device that `outputs` names for it: "cpu" or "cuda".

    Arrays are taken from the host, and other inputs from where they are. A run ends when the device has ended
    it, so what it gave may go into another session's run at once.
    """
    # A new binding each time: the outputs of one are views into it that its next run would overwrite.
    binding = session.io_binding()
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            value = OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))
        binding.bind_ortvalue_input(name, value)
    for name, device in outputs.items():
        binding.bind_output(name, device)
    session.run_with_iobinding(binding)
    return dict(zip(outputs, binding.get_outputs(), strict=True))
