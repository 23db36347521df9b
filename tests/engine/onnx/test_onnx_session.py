"""Where graphs run, told by real sessions."""

import subprocess
import sys
from typing import Any

import onnxruntime
import pytest
from dragoman_bundle.bundle import Bundle

from dragoman_server.engine.errors import DeviceUnavailableError
from dragoman_server.engine.onnx.session import (
    CPU_PROVIDER,
    CUDA_PROVIDER,
    DecoderOptions,
    find_strays,
    open_session,
)


def test_importing_the_engine_does_not_import_onnxruntime() -> None:
    script = "import sys, dragoman_server.engine; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_session_takes_its_threads_and_does_not_spin(bundle: Bundle) -> None:
    session = open_session(
        bundle.graph_path("fp32", "decoder_step"), DecoderOptions(device="cpu", num_threads=2)
    )
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert session.get_providers() == [CPU_PROVIDER]


def test_nothing_is_reported_home(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    make = onnxruntime.InferenceSession

    def make_session(*arguments: Any, **options: Any) -> onnxruntime.InferenceSession:
        calls.append("session")
        return make(*arguments, **options)

    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: calls.append("telemetry off"))
    monkeypatch.setattr(onnxruntime, "InferenceSession", make_session)
    open_session(bundle.graph_path("fp32", "encoder"), DecoderOptions(device="cpu", num_threads=1))
    assert calls == ["telemetry off", "session"]


def test_arithmetic_elsewhere_than_wanted_is_found_and_shapes_are_not(bundle: Bundle) -> None:
    session = open_session(
        bundle.graph_path("fp32", "decoder_step"), DecoderOptions(device="cpu", num_threads=1)
    )
    assert find_strays(session, CPU_PROVIDER) == []
    operators = {stray.rpartition("(")[2].rstrip(")") for stray in find_strays(session, CUDA_PROVIDER)}
    assert {"MatMul", "Softmax", "TopK", "Tanh"} <= operators
    assert "Shape" not in operators


@pytest.mark.parametrize(
    ("has_driver", "told"),
    [
        (True, "built without CUDAExecutionProvider; put onnxruntime-gpu in its place"),
        (False, "^cuda cannot be used: no GPU here; auto takes the CPU where there is none$"),
    ],
)
def test_a_provider_that_is_not_installed_is_refused(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, has_driver: bool, told: str
) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CPU_PROVIDER])
    monkeypatch.setattr("dragoman_server.engine.onnx.session._has_driver", lambda: has_driver)
    with pytest.raises(DeviceUnavailableError, match=told):
        open_session(bundle.graph_path("fp32", "encoder"), DecoderOptions(device="cuda", num_threads=1))
