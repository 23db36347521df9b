"""Where a model runs."""

import torch


def choose_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one. Raises ValueError for one that isn't."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f'there is no device "{name}"; use auto, cpu, cuda, cuda:1, …') from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ValueError(f"{name} can't be used: PyTorch finds {count} CUDA devices here")
    return device


def multiplies_in_bf16(device: torch.device) -> bool:
    """Whether bf16 products are done by the hardware, and so pay."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported())
