"""The image, its services and the unit for systemd: what they run, and how little these may."""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.deploy.conftest import ROOT, SERVERS, Dockerfile, Tree, load, serve_options, user_of
from tests.deploy.dockerfile import Instruction, final_stage, is_ignored

from dragoman_server.cli import serve
from dragoman_server.config import ServerConfig
from dragoman_server.healthcheck import healthcheck

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def only(instructions: Dockerfile, name: str) -> Instruction:
    """The one instruction of that name."""
    [found] = [instruction for instruction in instructions if instruction.name == name]
    return found


def sources(instructions: Dockerfile) -> list[str]:
    """What is copied from the repository."""
    return [
        source
        for instruction in instructions
        if instruction.name in ("COPY", "ADD") and not any("--from" in flag for flag in instruction.flags)
        for source in instruction.arguments[:-1]
    ]


def requirements(extras: str) -> set[str]:
    """Names, with the extras they ask for, of all that extras of this project install directly."""
    found = set()
    for extra in extras.split(","):
        for requirement in PROJECT["optional-dependencies"][extra]:
            name = re.split(r"[ ;<>=!~]", requirement)[0]
            own = re.fullmatch(r"dragoman\[(.+)\]", name)
            found |= requirements(own[1]) if own else {name}
    return found


def builds(compose: Tree) -> list[Tree]:
    """How each server's image is built, on the CPU first."""
    return [compose["services"][name]["build"] for name in SERVERS]


def test_everything_that_is_copied_exists_and_reaches_the_build(dockerfile: Dockerfile) -> None:
    dockerignore = (ROOT / ".dockerignore").read_text()
    dockerignore = re.sub(r"^#.*$", "", dockerignore, flags=re.MULTILINE)
    assert sources(dockerfile)
    for source in sources(dockerfile):
        assert (ROOT / source).exists(), source
        assert not is_ignored(source, dockerignore), source


def test_image_holds_the_packages_that_the_server_imports(dockerfile: Dockerfile) -> None:
    packages = {Path(source).name for source in sources(dockerfile)}
    assert {"dragoman", "dragoman_bundle", "dragoman_server"} <= packages
    # `dragoman get` is a process of its own.
    assert {"dragoman_training", "dragoman_export"} <= packages


def test_no_image_has_torch_and_each_its_onnxruntime(dockerfile: Dockerfile, compose: Tree) -> None:
    assert not any("torch" in instruction.text for instruction in dockerfile)
    cpu, gpu = (requirements(build["args"]["EXTRAS"]) for build in builds(compose))
    assert {name for name in cpu if name.startswith("onnxruntime")} == {"onnxruntime"}
    assert "onnxruntime-gpu[cuda,cudnn]" in gpu, "a container has the driver, and of CUDA nothing else"
    # Those, too, whose extras stand in the file's head.
    shown = re.findall(r"--build-arg EXTRAS=(\S+) \.", (ROOT / "server" / "Dockerfile").read_text())
    assert {"numba", "onnxruntime"} <= requirements(next(extras for extras in shown if "align" in extras))
    assert all("sentencepiece" in installed for installed in (cpu, gpu))
    for installed in (cpu, gpu, *map(requirements, shown)):
        assert not any("torch" in name for name in installed)


def test_image_runs_what_the_project_is_tested_with_not_as_root_or_in_a_shell(dockerfile: Dockerfile) -> None:
    [install] = [item.text for item in dockerfile if item.name == "RUN" and "pip install" in item.text]
    assert "--constraint constraints.txt" in install
    assert "constraints.txt" in sources(dockerfile)
    user = user_of(dockerfile)
    assert user.isdecimal(), "where root is forbidden, only a number tells that this is not root"
    assert int(user) > 0
    program, command = only(final_stage(dockerfile), "ENTRYPOINT").exec_form
    assert program in PROJECT["scripts"]
    assert command in PROJECT["entry-points"]["dragoman.commands"]


def test_health_check_is_a_command_that_the_image_has_and_ports_are_its_own(dockerfile: Dockerfile) -> None:
    python, flag, module, *arguments = only(final_stage(dockerfile), "HEALTHCHECK").exec_form
    assert (python, flag) == ("python", "-m")
    assert importlib.import_module(module).healthcheck is healthcheck
    asked = healthcheck.make_context("healthcheck", arguments).params["server"]
    assert asked.endswith(f":{ServerConfig.port}")
    # HTTP where the command names it, as compose and Kubernetes do.
    http = load("docker-compose.yml")["x-dragoman"]["environment"]
    ports = (ServerConfig.port, http["DRAGOMAN_SERVE_HTTP_PORT"], ServerConfig.metrics_port)
    assert only(final_stage(dockerfile), "EXPOSE").words == [str(port) for port in ports]


def bind_mounts(service: Tree) -> list[tuple[str, str, bool]]:
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


def test_every_container_is_confined_and_reached_from_this_machine_alone(compose: Tree) -> None:
    own = ["127.0.0.1:50051:50051", "127.0.0.1:8080:8080"]
    servers = dict.fromkeys(("dragoman-cpu", "dragoman-gpu", "dragoman-get"), own)
    others = {"prometheus": ["127.0.0.1:9090:9090"], "grafana": ["127.0.0.1:3000:3000"]}
    assert {name: service["ports"] for name, service in compose["services"].items()} == servers | others
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
        assert service.get("user") not in ("root", "0")
    mounts = [mount for service in compose["services"].values() for mount in bind_mounts(service)]
    assert len(mounts) == 6
    for source, _, read_only in mounts:
        assert (ROOT / source).is_dir(), source
        assert read_only, source


def test_server_takes_its_environment_and_command(options: Tree, service: Tree) -> None:
    ports = {50051: options["port"], 8080: options["http_port"]}
    assert service["ports"] == [f"127.0.0.1:{here}:{there}" for here, there in ports.items()]
    assert options["host"] == "0.0.0.0", "a container's loopback is out of reach"
    [(_, target, _)] = bind_mounts(service)
    assert options["models"] == Path(target)
    # Its drain ends before Docker kills it.
    assert seconds(service["stop_grace_period"]) >= options["drain_seconds"] + 5


def test_models_are_fetched_into_a_volume_that_the_server_may_write(
    compose: Tree, dockerfile: Dockerfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = compose["services"]["dragoman-get"]
    options = serve_options(dockerfile, service["environment"], service["command"], monkeypatch)
    [volume] = service["volumes"]
    assert volume.split(":") == ["models", str(options["models"])]
    assert options["get"] == "de-en,en-de"
    assert "get" in service["build"]["args"]["EXTRAS"].split(",")
    # A new volume is as the image has it.
    made = [item.text for item in final_stage(dockerfile) if item.name == "RUN"]
    assert any(f"--owner {user_of(dockerfile)} {options['models']}" in text for text in made)


def test_the_gpu_server_alone_reserves_a_gpu_and_refuses_to_run_without(options: Tree, service: Tree) -> None:
    if options["device"] == "cpu":
        assert "deploy" not in service
        return
    [device] = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert options["device"] == "cuda"


def test_health_check_of_a_service_is_a_command_that_the_server_brings(service: Tree, options: Tree) -> None:
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


def test_grafana_lets_nobody_in_without_a_password(compose: Tree) -> None:
    environment = compose["services"]["grafana"]["environment"]
    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    raw = load("docker-compose.yml")["services"]["grafana"]["environment"]
    assert raw["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_ADMIN_PASSWORD")


UNIT = (ROOT / "deploy" / "dragoman.service").read_text()

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here"
)


def setting(name: str) -> str:
    [found] = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return str(found)


def test_it_starts_the_server_and_waits_for_its_drain() -> None:
    program, command, *options = setting("ExecStart").split()
    assert (Path(program).name, command) == ("dragoman", "serve")
    values = serve.make_context("serve", options).params
    assert values["http_port"] == 8080
    assert int(setting("TimeoutStopSec")) >= values["drain_seconds"] + 5


@needs_systemd
def test_systemd_understands_it_and_it_may_little(tmp_path: Path) -> None:
    unit = tmp_path / "dragoman.service"
    unit.write_text(UNIT.replace(setting("ExecStart").split()[0], sys.executable))
    command = ["systemd-analyze", "verify", str(unit)]
    checked = subprocess.run(command, capture_output=True, text=True, check=True)
    assert checked.stdout + checked.stderr == ""
    # By systemd's own measure, from 0 to 10, of what a service could do if it were taken over.
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "deploy/dragoman.service"]
    rated = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout
