import pytest
import torch

from dragoman_training import precision
from dragoman_training.precision import choose_dtype


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
    monkeypatch.setattr(precision, "_is_amd", lambda: amd)

    assert choose_dtype("auto", torch.device("cpu")) == expected
