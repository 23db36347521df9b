"""The engine decodes every family, whatever its state holds, as PyTorch does and as each sentence alone."""

import pytest
from dragoman_bundle.bundle import Bundle
from tests.engine.exported import (
    check_it_decodes_what_pytorch_does,
    check_who_joins_decodes_as_alone,
    export_family,
    open_plain,
)
from tests.export.toy_checkpoint import CONFIGS

FEW = ("luong", "plain", "structured", "ssru")
"""Those that differ most in what they remember; `tests/export` tries the graphs of the others, too."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name in FEW else [pytest.mark.long])
        for name in CONFIGS
        if not name.startswith(("transformer", "lm"))
    ],
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Those whose state grows are in `test_growing_state`."""
    return export_family(request.param, tmp_path_factory)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("int8", 1e-3)])
def test_whoever_joins_a_running_batch_decodes_to_what_it_decodes_to_alone(
    exported: Bundle, precision: str, tolerance: float
) -> None:
    check_who_joins_decodes_as_alone(open_plain(exported, precision), 4, (20,), tolerance)


def test_the_engine_decodes_what_pytorch_does(exported: Bundle) -> None:
    check_it_decodes_what_pytorch_does(exported)
