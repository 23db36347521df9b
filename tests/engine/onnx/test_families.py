"""The engine decodes every family, whatever its state holds, as PyTorch does and as each sentence alone."""

import pytest
from dragoman_bundle.bundle import Bundle
from tests.engine.exported import (
    check_it_decodes_what_pytorch_does,
    check_who_joins_decodes_as_alone,
    export_family,
)
from tests.export.toy_checkpoint import ALIKE, CONFIGS

from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.long] if name in ALIKE else [])
        for name in CONFIGS
        if not name.startswith(("transformer", "lm"))
    ],
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Those whose state grows are in `test_growing_state`."""
    return export_family(request.param, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("int8", 1e-3)])
def test_whoever_joins_a_running_batch_decodes_to_what_it_decodes_to_alone(
    exported: Bundle, precision: str, tolerance: float
) -> None:
    decoder = open_decoder(exported, DecoderOptions(device="cpu", precision=precision, num_threads=1))
    check_who_joins_decodes_as_alone(decoder, 4, (20,), tolerance)


def test_the_engine_decodes_what_pytorch_does(exported: Bundle) -> None:
    check_it_decodes_what_pytorch_does(exported)
