"""Where a model runs, and in what numbers it computes there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one. Raises ValueError for one that isn't.

    On GPUs attention is kept from cuDNN, which plans anew for every shape, and batches of text have many: a
    step of a small Transformer took 219 ms on an H200, and 38 with PyTorch's own kernels.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f'there is no device "{name}"; use auto, cpu, cuda, cuda:1, …') from error
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f'"{name}" is no device to train on; use auto, cpu, cuda, cuda:1, …')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ValueError(f"{name} can't be used: PyTorch finds {count} CUDA devices here")
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def multiplies_in_bf16(device: torch.device) -> bool:
    """Whether bf16 products are done by the hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported())


def bf16_pays(device: torch.device) -> bool:
    """Whether training is faster in bf16.

    On CPUs it is with AMX, and on AMD's with bf16 in AVX-512; Intel's with that alone are slower in it.
    """
    if device.type == "cpu":
        return bool(torch.cpu._is_amx_tile_supported()) or (multiplies_in_bf16(device) and _is_amd())
    return multiplies_in_bf16(device)


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def choose_dtype(precision: Literal["auto", "fp32", "bf16", "fp16"], device: torch.device) -> torch.dtype:
    """The type of activations and matrix products of a recipe's precision. Raises ValueError.

    fp16 is refused on a CPU: its matrix products are emulated there, slower than float32 ones.
    """
    if precision == "fp16" and device.type != "cuda":
        raise ValueError(
            f'training.precision is "fp16", which needs a CUDA device, but this one is {device}; '
            'use "bf16", "fp32" or "auto"'
        )
    if precision == "auto":
        return torch.bfloat16 if bf16_pays(device) else torch.float32
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def precision_of(dtype: torch.dtype) -> str:
    """What a recipe calls the type that `choose_dtype` chose."""
    return {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]


@contextmanager
def computing_in(dtype: torch.dtype, device: torch.device) -> Iterator[None]:
    """Activations and matrix products in that type, on any device.

    A CPU without instructions for it computes slowly, and without oneDNN, which has no such recurrent layers.
    """
    mixed = dtype != torch.float32
    emulated = mixed and device.type == "cpu" and not multiplies_in_bf16(device)
    onednn = torch.backends.mkldnn
    before = onednn.enabled
    if emulated:
        onednn.enabled = False  # type: ignore[assignment]
    try:
        with torch.autocast(device.type, dtype if mixed else None, enabled=mixed):
            yield
    finally:
        if emulated:
            onednn.enabled = before
