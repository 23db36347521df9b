"""What the configuration makes of a model's engine."""

from dragoman_server.config import EngineConfig, RequestLimits
from dragoman_server.engine import EngineLimits
from dragoman_server.models.loader import engine_limits


def test_an_engine_without_a_server_has_the_limits_that_one_of_a_server_has_by_default() -> None:
    assert engine_limits(EngineConfig(), RequestLimits.max_beam_size) == EngineLimits()
