import pytest
import torch

from dragoman_training.precision import choose_dtype


@pytest.mark.parametrize(("amx", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_auto_is_bf16_on_a_cpu_with_amx_alone(
    monkeypatch: pytest.MonkeyPatch, amx: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)

    assert choose_dtype("auto", torch.device("cpu")) == expected


def test_bf16_that_is_asked_for_needs_no_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)

    assert choose_dtype("bf16", torch.device("cpu")) == torch.bfloat16
