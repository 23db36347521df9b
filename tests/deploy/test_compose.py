import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.conftest import ROOT, SERVERS, serve_options
from tests.deploy.dockerfile import Instruction, final_stage

from dragoman_server.healthcheck import healthcheck


def bind_mounts(service: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Of each folder of this machine that is mounted: where it is, where it goes, whether it is read-only."""
    mounts = []
    for volume in service["volumes"]:
        if isinstance(volume, dict):
            mounts.append((volume["source"], volume["target"], volume["read_only"]))
        elif volume.startswith("."):
            source, target, *mode = volume.split(":")
            mounts.append((source, target, mode == ["ro"]))
    return mounts


def seconds(duration: str) -> float:
    match = re.fullmatch(r"(\d+)s", duration)
    assert match, duration
    return float(match[1])


def test_ports_are_reached_from_this_machine_alone(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items()}
    assert published == {
        "dragoman-cpu": ["127.0.0.1:50051:50051", "127.0.0.1:8080:8080"],
        "dragoman-gpu": ["127.0.0.1:50051:50051", "127.0.0.1:8080:8080"],
        "dragoman-get": ["127.0.0.1:50051:50051", "127.0.0.1:8080:8080"],
        "prometheus": ["127.0.0.1:9090:9090"],
        "grafana": ["127.0.0.1:3000:3000"],
    }


def test_every_container_is_confined(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
        assert service.get("user") not in ("root", "0")


def test_every_folder_that_is_mounted_exists_and_is_read_only(compose: dict[str, Any]) -> None:
    mounts = [mount for service in compose["services"].values() for mount in bind_mounts(service)]
    assert len(mounts) == 6
    for source, _, read_only in mounts:
        assert (ROOT / source).is_dir(), source
        assert read_only, source


def test_server_takes_its_environment_and_command(options: dict[str, Any], service: dict[str, Any]) -> None:
    assert service["ports"] == [
        f"127.0.0.1:50051:{options['port']}",
        f"127.0.0.1:8080:{options['http_port']}",
    ]
    assert options["host"] == "0.0.0.0", "a container's loopback is out of reach"
    [(_, target, _)] = bind_mounts(service)
    assert options["models"] == Path(target)


def test_drain_ends_before_docker_kills(options: dict[str, Any], service: dict[str, Any]) -> None:
    assert seconds(service["stop_grace_period"]) >= options["drain_seconds"] + 5


def test_models_are_fetched_into_a_volume_that_the_server_may_write(
    compose: dict[str, Any], dockerfile: list[Instruction], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = compose["services"]["dragoman-get"]
    options = serve_options(dockerfile, service["environment"], service["command"], monkeypatch)
    [volume] = service["volumes"]
    assert volume.split(":") == ["models", str(options["models"])]
    assert options["get"] == "de-en,en-de"
    assert "get" in service["build"]["args"]["EXTRAS"].split(",")
    [user] = [item.text for item in final_stage(dockerfile) if item.name == "USER"]
    made = [item.text for item in final_stage(dockerfile) if item.name == "RUN"]
    assert any(f"--owner {user} {options['models']}" in text for text in made), (
        "a new volume is as the image has it"
    )


@pytest.mark.parametrize("service", SERVERS[1:], indirect=True)
def test_gpu_server_reserves_the_gpu_and_refuses_to_run_without(
    options: dict[str, Any], service: dict[str, Any]
) -> None:
    [device] = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert options["device"] == "cuda"


@pytest.mark.parametrize("service", SERVERS[:1], indirect=True)
def test_cpu_server_asks_for_no_gpu(options: dict[str, Any], service: dict[str, Any]) -> None:
    assert "deploy" not in service
    assert options["device"] == "cpu"


def test_health_check_is_a_command_that_the_server_brings(
    service: dict[str, Any], options: dict[str, Any]
) -> None:
    kind, python, flag, module, *arguments = service["healthcheck"]["test"]
    assert (kind, python, flag) == ("CMD", "python", "-m")
    assert importlib.import_module(module).healthcheck is healthcheck
    asked = healthcheck.make_context("healthcheck", arguments).params
    assert asked["server"] == f"localhost:{options['port']}"
    assert asked["timeout"] < seconds(service["healthcheck"]["timeout"])


def test_settings_that_the_head_lists_are_those_that_are_read() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    listed = dict(re.findall(r"^#   ([A-Z_]+) +(\S+) ", text, re.MULTILINE))
    assert listed == dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", text))


def test_grafana_lets_nobody_in_without_a_password(compose: dict[str, Any]) -> None:
    environment = compose["services"]["grafana"]["environment"]
    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    raw = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["grafana"]["environment"]
    assert raw["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_ADMIN_PASSWORD")
