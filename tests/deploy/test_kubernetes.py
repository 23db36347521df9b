import re
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.deploy.conftest import ROOT, serve_options
from tests.deploy.dockerfile import Instruction, final_stage

FOLDER = ROOT / "deploy" / "kubernetes" / "one"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """By kind."""
    found = list(yaml.safe_load_all((FOLDER / "dragoman.yml").read_text()))
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


@pytest.fixture
def pod(objects: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = objects["Deployment"]["spec"]["template"]["spec"]
    return spec


@pytest.fixture
def container(pod: dict[str, Any]) -> dict[str, Any]:
    [found] = pod["containers"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def options(
    container: dict[str, Any], dockerfile: list[Instruction], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    environment = {each["name"]: each["value"] for each in container["env"]}
    return serve_options(dockerfile, environment, container["args"], monkeypatch)


@pytest.mark.parametrize("kind", ["Deployment", "Service"])
def test_each_object_is_one_that_kubernetes_knows(objects: dict[str, Any], kind: str) -> None:
    kubernetes_validate.validate(objects[kind], kubernetes_validate.latest_version(), strict=True)
    assert objects.keys() == {"Deployment", "Service"}


def test_kustomize_names_the_image_of_the_deployment(container: dict[str, Any]) -> None:
    kustomization = yaml.safe_load((FOLDER / "kustomization.yml").read_text())
    assert kustomization["resources"] == ["dragoman.yml"]
    assert [image["name"] for image in kustomization["images"]] == [container["image"]]


def test_the_ingress_leads_to_the_services_http(objects: dict[str, Any]) -> None:
    ingress = yaml.safe_load((FOLDER / "ingress.yml").read_text())
    kubernetes_validate.validate(ingress, kubernetes_validate.latest_version(), strict=True)
    [rule] = ingress["spec"]["rules"]
    service = rule["http"]["paths"][0]["backend"]["service"]
    assert service["name"] == objects["Service"]["metadata"]["name"]
    assert service["port"]["name"] in {port["name"] for port in objects["Service"]["spec"]["ports"]}
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]


def test_the_service_and_the_deployment_choose_the_same_pods(objects: dict[str, Any]) -> None:
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert objects["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert objects["Service"]["spec"]["selector"] == labels


def test_ports_and_probes_are_those_that_the_server_listens_on(
    objects: dict[str, Any], container: dict[str, Any], options: dict[str, Any]
) -> None:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {
        "grpc": options["port"],
        "http": options["http_port"],
        "metrics": options["metrics_port"],
    }
    assert options["host"] == "0.0.0.0", "a pod's loopback is out of reach"
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["grpc"] == {"port": options["port"]}
    assert "livenessProbe" not in container
    reached = {port["targetPort"]: port["port"] for port in objects["Service"]["spec"]["ports"]}
    assert reached == {name: ports[name] for name in ("grpc", "http")}
    annotations = objects["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(options["metrics_port"])


def test_services_stop_sending_before_the_drain_which_ends_before_kubernetes_kills(
    pod: dict[str, Any], container: dict[str, Any], options: dict[str, Any]
) -> None:
    wait_seconds = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert wait_seconds >= 5
    assert pod["terminationGracePeriodSeconds"] >= wait_seconds + options["drain_seconds"] + 5


def test_the_job_that_prometheus_is_told_to_make_of_a_pod_is_the_one_that_alerts_look_for(
    objects: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    comment = "\n".join(re.findall("^#   (.*)", (FOLDER / "dragoman.yml").read_text(), re.MULTILINE))
    [relabelling] = yaml.safe_load(comment)
    [source] = relabelling["source_labels"]
    labels = {
        "__meta_kubernetes_pod_label_" + re.sub(r"\W", "_", name): value
        for name, value in objects["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    }
    assert relabelling["target_label"] == "job"
    [down] = [rule["expr"] for rule in rules if rule.get("alert") == "DragomanDown"]
    assert f'up{{job="{labels[source]}"}}' in down


def test_the_pod_runs_as_the_user_of_the_image_with_no_more_rights_than_it_needs(
    pod: dict[str, Any], container: dict[str, Any], dockerfile: list[Instruction]
) -> None:
    user = [instruction.text for instruction in final_stage(dockerfile) if instruction.name == "USER"][-1]
    assert pod["securityContext"]["runAsUser"] == int(user)
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pod["automountServiceAccountToken"]
