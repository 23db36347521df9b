"""The deployment's files, parsed, and what the server really has to set against them."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.deploy.dockerfile import Instruction, final_stage, read_dockerfile
from tests.engine.house import VOCABULARY, endless, pool_over
from tests.engine.table_decoder import TableDecoder
from tests.server.copying_bundle import MANIFEST

from dragoman.v1 import translation_pb2
from dragoman_server.api.interceptors import CallMetrics
from dragoman_server.cli import serve
from dragoman_server.metrics.process import ProcessMetrics
from dragoman_server.metrics.translation import Metrics, ModelMetrics

ROOT = Path(__file__).parents[2]
SERVERS = ("dragoman-cpu", "dragoman-gpu")

Tree = dict[str, Any]
"""A parsed file, or a part of one."""
Dockerfile = list[Instruction]
Labels = dict[str, frozenset[str]]
"""Those of each metric, by its name."""

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed; it comes with Prometheus"
)

_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def _interpolate(value: Any) -> Any:
    """Puts the default of each ${VARIABLE:-default} in its place, as Compose does where none is set."""
    if isinstance(value, dict):
        return {key: _interpolate(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolate(item) for item in value]
    return _DEFAULT.sub(r"\1", value) if isinstance(value, str) else value


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


@pytest.fixture(scope="session")
def compose() -> Tree:
    """docker-compose.yml with nothing set in the environment."""
    return _interpolate(load("docker-compose.yml"))


@pytest.fixture(scope="session")
def dockerfile() -> Dockerfile:
    return read_dockerfile(ROOT / "server" / "Dockerfile")


@pytest.fixture(params=SERVERS)
def service(compose: Tree, request: pytest.FixtureRequest) -> Tree:
    """Each of the two servers."""
    return compose["services"][request.param]


@pytest.fixture
def options(service: Tree, dockerfile: Dockerfile, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """What `dragoman serve` makes of the image's environment, the service's environment and its command."""
    return serve_options(dockerfile, service["environment"], service["command"], monkeypatch)


def metrics_in(expression: str) -> list[str]:
    """The names of metrics and of recorded rules that stand in a PromQL expression."""
    return re.findall(r"\bup\b|(?:\w+:)*(?:dragoman|grpc_server|process)_\w+(?::\w+)*", expression)


def check_names(expression: str, known: Labels) -> None:
    """Asserts that its metrics are known, and that one of them has each label it selects by."""
    names = metrics_in(expression)
    assert names, expression
    assert known.keys() >= set(names), expression
    labels = frozenset().union(*(known[name] for name in names))
    assert labels.issuperset(re.findall(r'(\w+)\s*(?:=|!=|=~|!~)\s*"', expression)), expression


def serve_options(
    dockerfile: Dockerfile, environment: Tree, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> Tree:
    image = dict(
        pair.split("=", 1)
        for instruction in final_stage(dockerfile)
        if instruction.name == "ENV"
        for pair in instruction.words
    )
    known = {f"DRAGOMAN_SERVE_{parameter.name}".upper() for parameter in serve.params}
    for name, value in (image | environment).items():
        if name.startswith("DRAGOMAN"):
            assert name in known
            monkeypatch.setenv(name, str(value))
    return serve.make_context("serve", [str(word) for word in command]).params


def user_of(dockerfile: Dockerfile) -> str:
    """As whom the image runs."""
    return [instruction.text for instruction in final_stage(dockerfile) if instruction.name == "USER"][-1]


@pytest.fixture(scope="session")
def prometheus() -> Tree:
    return load("deploy/prometheus/prometheus.yml")


@pytest.fixture(scope="session")
def rules() -> list[Tree]:
    """Recording and alerting rules alike."""
    return [rule for group in load("deploy/prometheus/rules.yml")["groups"] for rule in group["rules"]]


@pytest.fixture(scope="session")
def dashboard() -> Tree:
    return json.loads((ROOT / "deploy/grafana/dashboards/dragoman.json").read_text())


@pytest.fixture(scope="session")
def panels(dashboard: Tree) -> list[Tree]:
    """Those that show something."""
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert panels
    return panels


@pytest.fixture(scope="session")
def exported() -> Labels:
    """By name of a sample that the server exports, and of `up`: its labels, and those that a scrape adds."""
    registry = CollectorRegistry()
    registry.register(ProcessMetrics(list, 2))
    model = ModelMetrics(Metrics(registry), MANIFEST)
    engine = pool_over(TableDecoder(endless, VOCABULARY))
    model.on_serve()
    model.on_load(engine=engine, precision="fp32", providers={"encoder": "CPUExecutionProvider"})
    CallMetrics(registry).prepare(translation_pb2.DESCRIPTOR.services_by_name["TranslationService"])
    samples = [sample for family in registry.collect() for sample in family.samples]
    labels = {"up": frozenset[str]()} | {sample.name: frozenset(sample.labels) for sample in samples}
    return {name: own | {"job", "instance"} for name, own in labels.items()}
