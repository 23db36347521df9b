"""Where a model runs."""

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
