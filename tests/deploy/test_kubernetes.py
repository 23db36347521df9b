"""One pod, or several that are found, scraped, scaled and ended in a way that fits the server."""

import re
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from tests.deploy.conftest import (
    ROOT,
    Dockerfile,
    Labels,
    Tree,
    check_names,
    metrics_in,
    serve_options,
    user_of,
)

from dragoman.cli.translate_file import translate_file
from dragoman.connection.route import read_route

ONE = ROOT / "deploy" / "kubernetes" / "one"


@pytest.fixture(scope="module")
def objects() -> Tree:
    """By kind."""
    found = list(yaml.safe_load_all((ONE / "dragoman.yml").read_text()))
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


@pytest.fixture
def pod(objects: Tree) -> Tree:
    return objects["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture
def container(pod: Tree) -> Tree:
    [found] = pod["containers"]
    return found


@pytest.fixture
def options(container: Tree, dockerfile: Dockerfile, monkeypatch: pytest.MonkeyPatch) -> Tree:
    environment = {each["name"]: each["value"] for each in container["env"]}
    return serve_options(dockerfile, environment, container["args"], monkeypatch)


@pytest.fixture(scope="module")
def deployment(objects: Tree) -> Tree:
    return objects["Deployment"]


@pytest.fixture(scope="module")
def labels(deployment: Tree) -> dict[str, str]:
    """Of each pod."""
    return deployment["spec"]["template"]["metadata"]["labels"]


def test_each_object_is_one_that_kubernetes_knows(objects: Tree) -> None:
    assert objects.keys() == {"Deployment", "Service"}
    found = {name: load(name) for name in KNOWN}
    assert {name: each["kind"] for name, each in found.items()} == KNOWN
    for each in (*objects.values(), *found.values()):
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_kustomize_names_the_image_of_the_deployment(container: Tree) -> None:
    kustomization = yaml.safe_load((ONE / "kustomization.yml").read_text())
    assert kustomization["resources"] == ["dragoman.yml"]
    assert [image["name"] for image in kustomization["images"]] == [container["image"]]


def test_the_ingress_leads_to_the_services_http(objects: Tree) -> None:
    ingress = yaml.safe_load((ONE / "ingress.yml").read_text())
    kubernetes_validate.validate(ingress, kubernetes_validate.latest_version(), strict=True)
    [rule] = ingress["spec"]["rules"]
    service = rule["http"]["paths"][0]["backend"]["service"]
    assert service["name"] == objects["Service"]["metadata"]["name"]
    assert service["port"]["name"] in {port["name"] for port in objects["Service"]["spec"]["ports"]}
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]


def test_all_choose_the_deployments_pods(objects: Tree, deployment: Tree, labels: dict[str, str]) -> None:
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    for service in (objects["Service"], load("headless-service")):
        assert service["spec"]["selector"] == labels
    for name in ("disruption-budget", "pod-monitor"):
        assert load(name)["spec"]["selector"]["matchLabels"] == labels
    target = load("autoscaler")["spec"]["scaleTargetRef"]
    assert {target["kind"], target["name"]} == {deployment["kind"], deployment["metadata"]["name"]}
    assert target["apiVersion"] == deployment["apiVersion"]


def test_ports_and_probes_are_those_of_the_server(objects: Tree, container: Tree, options: Tree) -> None:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    expected = {"grpc": "port", "http": "http_port", "metrics": "metrics_port"}
    assert ports == {name: options[option] for name, option in expected.items()}
    assert options["host"] == "0.0.0.0", "a pod's loopback is out of reach"
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["grpc"] == {"port": options["port"]}
    assert "livenessProbe" not in container
    reached = {port["targetPort"]: port["port"] for port in objects["Service"]["spec"]["ports"]}
    assert reached == {name: ports[name] for name in ("grpc", "http")}
    annotations = objects["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(options["metrics_port"])


def test_services_stop_before_the_drain_and_kubernetes_behind(
    pod: Tree, container: Tree, options: Tree
) -> None:
    wait_seconds = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert wait_seconds >= 5
    assert pod["terminationGracePeriodSeconds"] >= wait_seconds + options["drain_seconds"] + 5


def test_the_job_of_a_pod_in_prometheus_is_the_one_that_alerts_look_for(
    labels: dict[str, str], rules: list[Tree]
) -> None:
    comment = "\n".join(re.findall("^#   (.*)", (ONE / "dragoman.yml").read_text(), re.MULTILINE))
    [relabelling] = yaml.safe_load(comment)
    [source] = relabelling["source_labels"]
    prefix = "__meta_kubernetes_pod_label_"
    [job] = [value for name, value in labels.items() if prefix + re.sub(r"\W", "_", name) == source]
    assert relabelling["target_label"] == "job"
    [down] = [rule["expr"] for rule in rules if rule.get("alert") == "DragomanDown"]
    assert f'up{{job="{job}"}}' in down


def test_the_pod_runs_as_the_images_user_with_few_rights(
    pod: Tree, container: Tree, dockerfile: Dockerfile
) -> None:
    assert pod["securityContext"]["runAsUser"] == int(user_of(dockerfile))
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pod["automountServiceAccountToken"]


KUBERNETES = ROOT / "deploy" / "kubernetes"
MANY = KUBERNETES / "many"
KNOWN = {
    "headless-service": "Service",
    "disruption-budget": "PodDisruptionBudget",
    "autoscaler": "HorizontalPodAutoscaler",
    "corpus-job": "Job",
}
"""What Kubernetes itself knows; a pod monitor is the operator's."""


def load(name: str) -> Tree:
    return yaml.safe_load((MANY / f"{name}.yml").read_text())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
@pytest.mark.parametrize(("name", "number"), [("one", 2), ("many", 6)])
def test_kustomize_builds_objects_that_kubernetes_knows(name: str, number: int) -> None:
    command = ["kubectl", "kustomize", str(KUBERNETES / name)]
    built = list(yaml.safe_load_all(subprocess.run(command, capture_output=True, check=True).stdout))
    assert len(built) == number
    for each in built:
        if each["kind"] != "PodMonitor":
            kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_kustomize_has_all_but_the_job_and_leaves_the_number_of_pods_to_the_autoscaler(
    deployment: Tree, container: Tree, dockerfile: Dockerfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    kustomization = load("kustomization")
    files = {path.name for path in MANY.iterdir()} - {"kustomization.yml", "corpus-job.yml"}
    assert set(kustomization["resources"]) == files | {"../one"}
    [patch] = kustomization["patches"]
    assert patch["target"] == {"kind": deployment["kind"], "name": deployment["metadata"]["name"]}
    removal, addition = yaml.safe_load(patch["patch"])
    assert removal == {"op": "remove", "path": "/spec/replicas"}
    assert "replicas" in deployment["spec"], "there must be something to remove"
    assert (addition["op"], addition["path"]) == ("add", "/spec/template/spec/containers/0/env/-")
    monkeypatch.setenv(addition["value"]["name"], addition["value"]["value"])
    environment = {each["name"]: each["value"] for each in container["env"]}
    options = serve_options(dockerfile, environment, container["args"], monkeypatch)
    assert options["max_connection_age_seconds"] == 300


def test_the_headless_service_stands_for_pods_on_their_own_port(container: Tree) -> None:
    spec = load("headless-service")["spec"]
    assert spec["clusterIP"] == "None"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    [port] = spec["ports"]
    # Clients take the port that they are told: there is nobody between to change it.
    assert port["port"] == ports[port["targetPort"]]


def test_the_pod_monitor_scrapes_the_metrics_port_under_the_job_that_alerts_look_for(
    container: Tree, labels: dict[str, str], rules: list[Tree]
) -> None:
    spec = load("pod-monitor")["spec"]
    [endpoint] = spec["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in container["ports"]]
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
    [down] = [rule["expr"] for rule in rules if rule.get("alert") == "DragomanDown"]
    assert f'up{{job="{labels[spec["jobLabel"]]}"}}' in down


def test_the_autoscaler_asks_for_what_its_rule_makes_of_a_metric_of_the_server(exported: Labels) -> None:
    spec = load("autoscaler")["spec"]
    [metric] = spec["metrics"]
    name = metric["pods"]["metric"]["name"]
    comment = "\n".join(re.findall("^#   (.*)", (MANY / "autoscaler.yml").read_text(), re.MULTILINE))
    [rule] = yaml.safe_load(comment)
    # What the adapter puts in: matchers of labels that a scrape by pod has.
    query = rule["metricsQuery"].replace("<<.LabelMatchers>>", 'pod="a"').replace("<<.GroupBy>>", "pod")
    for text in (rule["seriesQuery"], query):
        assert metrics_in(text) == [name]
        check_names(text, {name: exported[name] | {"namespace", "pod"}})
    assert "by (pod)" in query
    assert spec["minReplicas"] >= 2, "with one pod a node that is emptied takes all"


def test_the_job_calls_the_command_as_it_is_and_every_pod(dockerfile: Dockerfile, tmp_path: Path) -> None:
    spec = load("corpus-job")["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    name, *arguments = container["args"]
    assert name == translate_file.name
    [mount] = container["volumeMounts"]
    assert all(path.startswith(mount["mountPath"] + "/") for path in arguments[-2:])
    (tmp_path / "in").touch()
    arguments[-2:] = [str(tmp_path / "in"), str(tmp_path / "out")]
    parsed = translate_file.make_context(str(name), arguments).params
    service = load("headless-service")
    [port] = service["spec"]["ports"]
    assert parsed["server"] == f"dns:///{service['metadata']['name']}:{port['port']}"
    assert read_route(parsed["server"], None).is_balanced
    assert parsed["streams"] > 1
    assert pod["securityContext"]["runAsUser"] == int(user_of(dockerfile))


def test_a_job_that_is_complete_with_failures_is_not_tried_again() -> None:
    job = load("corpus-job")
    [rule] = [each for each in job["spec"]["podFailurePolicy"]["rules"] if "onExitCodes" in each]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert rule["onExitCodes"] == {"containerName": container["name"], "operator": "In", "values": [3]}
    assert rule["action"] == "FailJob"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never", "policies of failures want it"
    assert translate_file.help is not None
    assert "Exit code 3" in translate_file.help
