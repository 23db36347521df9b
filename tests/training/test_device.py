import pytest
import torch

from dragoman_training import device
from dragoman_training.device import choose_device, choose_dtype


def test_attention_on_a_gpu_is_kept_from_plans_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("cpu")
    assert torch.backends.cuda.cudnn_sdp_enabled()
    choose_device("cuda")
    assert not torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize(
    ("amx", "avx512", "amd", "expected"),
    [
        (True, True, False, torch.bfloat16),
        (False, True, True, torch.bfloat16),
        (False, True, False, torch.float32),
        (False, False, True, torch.float32),
    ],
)
def test_auto_is_bf16_on_cpus_that_gain_by_it(
    monkeypatch: pytest.MonkeyPatch, amx: bool, avx512: bool, amd: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(device, "_is_amd", lambda: amd)

    assert choose_dtype("auto", torch.device("cpu")) == expected
