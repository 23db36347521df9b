"""What a request that says little is taken to mean."""

from typing import cast

import pytest
from dragoman_bundle import Bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits
from dragoman_server.engine import Engine, Priority
from dragoman_server.metrics.translation import ModelMetrics
from dragoman_server.models.model import Model
from dragoman_server.models.repository import Repository
from dragoman_server.service.requests import RequestReader


@pytest.fixture
def model(bundle: Bundle) -> Model:
    """Of which a reader needs no more than the bundle."""
    return Model(
        bundle=bundle,
        engine=cast(Engine, None),
        metrics=cast(ModelMetrics, None),
        precision="fp32",
        providers={},
        default_beam_size=2,
        max_sentences={},
    )


@pytest.fixture
def reader() -> RequestReader:
    return RequestReader(cast(Repository, None), RequestLimits(), {}, {})


def test_a_call_is_interactive_and_a_stream_is_a_job(reader: RequestReader, model: Model) -> None:
    assert reader.read(pb.TranslateRequest(), model).options.priority is Priority.INTERACTIVE
    assert reader.read_config(pb.TranslateStreamConfig(), model).priority is Priority.BULK


def test_a_caller_may_choose_the_priority(reader: RequestReader, model: Model) -> None:
    bulk = pb.TranslateRequest(priority=pb.PRIORITY_BULK)
    assert reader.read(bulk, model).options.priority is Priority.BULK
    interactive = pb.TranslateStreamConfig(priority=pb.PRIORITY_INTERACTIVE)
    assert reader.read_config(interactive, model).priority is Priority.INTERACTIVE
