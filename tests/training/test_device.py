import pytest
import torch

from dragoman_training.device import choose_device


def test_attention_on_a_gpu_is_kept_from_plans_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("cpu")
    assert torch.backends.cuda.cudnn_sdp_enabled()
    choose_device("cuda")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
