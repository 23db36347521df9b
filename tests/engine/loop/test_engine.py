"""The names that others build on."""

import subprocess
import sys

from dragoman_server import engine


def test_the_public_names_are_these() -> None:
    assert engine.__all__ == [
        "Admission",
        "Batch",
        "BatchStepped",
        "DeadlineExpiredError",
        "Decoder",
        "DecoderError",
        "DeviceUnavailableError",
        "Engine",
        "EngineClosedError",
        "EngineError",
        "EngineLimits",
        "EngineLostError",
        "Event",
        "FinishReason",
        "Hypothesis",
        "Listener",
        "Outcome",
        "PrecisionUnavailableError",
        "Priority",
        "QueueFullError",
        "SearchOptions",
        "Sentence",
        "SentenceError",
        "SentenceResult",
        "StepInput",
        "StepOutput",
        "warm",
    ]


def test_importing_the_engine_does_not_import_onnxruntime() -> None:
    script = "import sys, dragoman_server.engine; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
