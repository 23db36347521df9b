import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from tests.deploy.conftest import ROOT, SERVERS
from tests.deploy.dockerfile import Instruction, final_stage, is_ignored

from dragoman_server.config import ServerConfig
from dragoman_server.healthcheck import healthcheck

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def only(instructions: list[Instruction], name: str) -> Instruction:
    """The one instruction of that name."""
    [found] = [instruction for instruction in instructions if instruction.name == name]
    return found


def sources(instructions: list[Instruction]) -> list[str]:
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


def builds(compose: dict[str, Any]) -> list[dict[str, Any]]:
    """How each server's image is built, on the CPU first."""
    return [compose["services"][name]["build"] for name in SERVERS]


def test_everything_that_is_copied_exists_and_reaches_the_build(dockerfile: list[Instruction]) -> None:
    dockerignore = (ROOT / ".dockerignore").read_text()
    dockerignore = re.sub(r"^#.*$", "", dockerignore, flags=re.MULTILINE)
    assert sources(dockerfile)
    for source in sources(dockerfile):
        assert (ROOT / source).exists(), source
        assert not is_ignored(source, dockerignore), source


def test_image_holds_the_packages_that_the_server_imports(dockerfile: list[Instruction]) -> None:
    packages = {Path(source).name for source in sources(dockerfile)}
    assert {"dragoman", "dragoman_bundle", "dragoman_server"} <= packages
    # `dragoman get` is a process of its own.
    assert {"dragoman_training", "dragoman_export"} <= packages


def test_image_has_no_torch(dockerfile: list[Instruction], compose: dict[str, Any]) -> None:
    assert not any("torch" in instruction.text for instruction in dockerfile)
    for build in builds(compose):
        installed = requirements(build["args"]["EXTRAS"])
        assert "sentencepiece" in installed
        assert not any("torch" in name for name in installed)


def test_every_image_that_the_file_names_is_of_extras_that_there_are(dockerfile: list[Instruction]) -> None:
    shown = re.findall(r"--build-arg EXTRAS=(\S+) \.", (ROOT / "server" / "Dockerfile").read_text())
    assert {"numba", "onnxruntime"} <= requirements(next(extras for extras in shown if "align" in extras))
    for extras in shown:
        assert not any("torch" in name for name in requirements(extras))


def test_each_image_has_the_onnxruntime_of_its_device(compose: dict[str, Any]) -> None:
    cpu, gpu = (requirements(build["args"]["EXTRAS"]) for build in builds(compose))
    assert {name for name in cpu if name.startswith("onnxruntime")} == {"onnxruntime"}
    assert "onnxruntime-gpu[cuda,cudnn]" in gpu, "a container has the driver, and of CUDA nothing else"


def test_container_does_not_run_as_root(dockerfile: list[Instruction]) -> None:
    user = [instruction.text for instruction in final_stage(dockerfile) if instruction.name == "USER"][-1]
    assert user.isdecimal(), "where root is forbidden, only a number tells that this is not root"
    assert int(user) > 0


def test_image_has_the_versions_that_the_project_is_tested_with(dockerfile: list[Instruction]) -> None:
    [install] = [item.text for item in dockerfile if item.name == "RUN" and "pip install" in item.text]
    assert "--constraint constraints.txt" in install
    assert "constraints.txt" in sources(dockerfile)


def test_no_shell_stands_between_a_signal_and_the_server(dockerfile: list[Instruction]) -> None:
    program, command = only(final_stage(dockerfile), "ENTRYPOINT").exec_form
    assert program in PROJECT["scripts"]
    assert command in PROJECT["entry-points"]["dragoman.commands"]


def test_health_check_is_a_command_that_the_image_has(dockerfile: list[Instruction]) -> None:
    python, flag, module, *arguments = only(final_stage(dockerfile), "HEALTHCHECK").exec_form
    assert (python, flag) == ("python", "-m")
    assert importlib.import_module(module).healthcheck is healthcheck
    assert (
        healthcheck.make_context("healthcheck", arguments).params["server"].endswith(f":{ServerConfig.port}")
    )


def test_ports_that_are_exposed_are_those_that_are_listened_on(dockerfile: list[Instruction]) -> None:
    exposed = only(final_stage(dockerfile), "EXPOSE").words
    # HTTP where the command names it, as compose and Kubernetes do.
    http = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["x-dragoman"]["environment"]
    ports = (ServerConfig.port, http["DRAGOMAN_SERVE_HTTP_PORT"], ServerConfig.metrics_port)
    assert exposed == [str(port) for port in ports]
