"""Prometheus and Grafana: they ask for what the server exports, and alert when they should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.deploy.conftest import ROOT, Labels, Tree, check_names, load, metrics_in, needs_promtool

from dragoman_server.metrics.series import LATENCY_BUCKETS

PROMETHEUS = ROOT / "deploy" / "prometheus"


def test_prometheus_scrapes_the_servers_metrics_port(prometheus: Tree, service: Tree, options: Tree) -> None:
    [scrape] = prometheus["scrape_configs"]
    [alias] = service["networks"]["default"]["aliases"]
    assert scrape["static_configs"] == [{"targets": [f"{alias}:{options['metrics_port']}"]}]
    assert scrape.get("metrics_path", "/metrics") == "/metrics"


def test_prometheus_finds_its_files_where_its_image_looks(compose: Tree, prometheus: Tree) -> None:
    assert "./deploy/prometheus:/etc/prometheus:ro" in compose["services"]["prometheus"]["volumes"]
    assert "command" not in compose["services"]["prometheus"], "the image's own reads /etc/prometheus"
    for name in prometheus["rule_files"]:
        assert (PROMETHEUS / name).is_file()


def test_rules_ask_for_what_the_server_exports(rules: list[Tree], exported: Labels, prometheus: Tree) -> None:
    known = dict(exported)
    for rule in rules:
        check_names(rule["expr"], known)
        if "record" in rule:
            known[rule["record"]] = frozenset().union(*(known[name] for name in metrics_in(rule["expr"])))
    jobs = {scrape["job_name"] for scrape in prometheus["scrape_configs"]}
    assert jobs == {"dragoman"}, "DragomanDown names it"


@needs_promtool
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", PROMETHEUS / "prometheus.yml"],
        ["test", "rules", ROOT / "tests/deploy/alerts.yml"],
        ["test", "rules", ROOT / "tests/deploy/alerts_over_days.yml"],
    ],
    ids=["config", "alerts", "alerts_over_days"],
)
def test_promtool_accepts_the_configuration_and_alerts_fire_when_they_should(command: list[str]) -> None:
    subprocess.run(["promtool", *command], check=True)


def test_the_objective_is_the_same_limit_wherever_it_stands(rules: list[Tree], dashboard: Tree) -> None:
    expressions = [rule["expr"] for rule in rules]
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    # The second is what p99 is divided by, in the estimates of what there is room for.
    for pattern in (
        r'request_seconds_bucket{[^}]*le="([^"]*)"',
        r"(?:p99_5m|\)\)\)) / ([0-9.]+)\s*\* clamp_min\(1 - ",
    ):
        limits = {float(limit) for expression in expressions for limit in re.findall(pattern, expression)}
        assert limits == {1.0}
    assert 1.0 in LATENCY_BUCKETS


GRAFANA = ROOT / "deploy" / "grafana"
SERVICE = 'grpc_service="dragoman.v1.TranslationService", grpc_method="Translate"'


def test_the_dashboard_is_what_its_panels_and_the_list_of_metrics_say() -> None:
    command = [sys.executable, GRAFANA / "generate.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def expressions(panels: list[Tree]) -> list[str]:
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    assert found
    return found


def test_dashboard_shows_only_what_the_server_exports(panels: list[Tree], exported: Labels) -> None:
    for expression in expressions(panels):
        check_names(expression, exported)


def test_dashboard_shows_metrics_of_translation(
    dashboard: Tree, panels: list[Tree], exported: Labels
) -> None:
    asked = expressions(panels) + [annotation["expr"] for annotation in dashboard["annotations"]["list"]]
    shown = {name for expression in asked for name in metrics_in(expression)}
    histograms = {name.removesuffix("_bucket") for name in exported if name.endswith("_bucket")}
    for name in exported:
        family = next((base for base in histograms if name.startswith(base)), None)
        parts = {f"{family}_bucket", f"{family}_sum", f"{family}_count"} if family else {name}
        if name.startswith("dragoman_") and not name.endswith("_created"):
            assert parts & shown, name


def test_what_is_chosen_narrows_its_metrics(dashboard: Tree, panels: list[Tree], exported: Labels) -> None:
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert {name: variable["query"]["query"] for name, variable in variables.items()} == {
        # A server that is down has no other metric, and is to be found all the same.
        "instance": 'label_values(up{job="dragoman"}, instance)',
        "model": "label_values(dragoman_model_loaded, model)",
    }
    for name, variable in variables.items():
        assert variable["multi"]
        assert variable["includeAll"]
        for expression in expressions(panels):
            selected = [metric for metric in metrics_in(expression) if name in exported[metric]]
            assert expression.count(f'{name}=~"${name}"') == len(selected), expression


@needs_promtool
@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (
            {
                'up{job="dragoman", instance="a"}': "1x30",
                'up{job="dragoman", instance="b"}': "0x30",
                'dragoman_serving{instance="a"}': "1x30",
                f'grpc_server_handled_total{{instance="a", {SERVICE}, grpc_code="OK"}}': "0x30",
                f'grpc_server_handled_total{{instance="a", {SERVICE}, grpc_code="INTERNAL"}}': "0x30",
                'dragoman_request_seconds_bucket{instance="a", priority="interactive", le="+Inf"}': "0x30",
            },
            {"Serving": [0.5], "Failed": [0], "Failed, requests": [0], "Latency, p95": []},
        ),
        (
            {'up{job="dragoman", instance="a"}': "0x30"},
            {"Serving": [0], "Failed": [0], "Failed, requests": [0], "Latency, p95": []},
        ),
        (
            {
                'up{job="dragoman", instance="a"}': "1x30",
                'dragoman_serving{instance="a"}': "1x30",
                f'grpc_server_handled_total{{instance="a", {SERVICE}, grpc_code="OK"}}': "0+3x30",
                f'grpc_server_handled_total{{instance="a", {SERVICE}, grpc_code="INTERNAL"}}': "0+1x30",
                'dragoman_requests_total{instance="a", outcome="OK"}': "0+1x30",
                'dragoman_requests_total{instance="a", outcome="INTERNAL"}': "0+1x30",
                'dragoman_request_seconds_bucket{instance="a", priority="interactive", le="1"}': "0+1x30",
                'dragoman_request_seconds_bucket{instance="a", priority="interactive", le="+Inf"}': "0+1x30",
            },
            {"Serving": [1], "Failed": [0.25], "Failed, requests": [0.5], "Latency, p95": [0.95]},
        ),
    ],
    ids=["one is idle and one is down", "all are down", "called"],
)
def test_what_is_so_now_is_told_of_servers_that_are_idle_or_down(
    panels: list[Tree], series: dict[str, str], expected: dict[str, list[float]], tmp_path: Path
) -> None:
    expression = {panel["title"]: panel["targets"][0]["expr"] for panel in panels}
    [failed] = [panel for panel in panels if panel["title"] == "Failed"]
    expression["Failed, requests"] = failed["targets"][1]["expr"]
    for name, value in {"$instance": ".*", "$model": ".*", "$__rate_interval": "1m"}.items():
        expression = {title: text.replace(name, value) for title, text in expression.items()}
    test = {
        "interval": "10s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expression[title],
                "eval_time": "5m",
                "exp_samples": [{"labels": "{}", "value": value} for value in values],
            }
            for title, values in expected.items()
        ],
    }
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "10s", "tests": [test]}))
    subprocess.run(["promtool", "test", "rules", file], check=True)


def test_data_source_is_the_prometheus_beside_it(compose: Tree, prometheus: Tree) -> None:
    [source] = load("deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"]
    [port] = [mapping.rsplit(":", 1)[1] for mapping in compose["services"]["prometheus"]["ports"]]
    assert source["url"] == f"http://prometheus:{port}"
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]


def test_grafana_finds_what_is_mounted(compose: Tree) -> None:
    grafana = compose["services"]["grafana"]
    mounts = dict(volume.removesuffix(":ro").split(":") for volume in grafana["volumes"])
    assert mounts["./deploy/grafana/provisioning/datasources"] == "/etc/grafana/provisioning/datasources"
    assert mounts["./deploy/grafana/provisioning/dashboards"] == "/etc/grafana/provisioning/dashboards"
    [provider] = load("deploy/grafana/provisioning/dashboards/dragoman.yml")["providers"]
    assert provider["options"]["path"] == mounts["./deploy/grafana/dashboards"]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert str(home.parent) == provider["options"]["path"]
    assert (GRAFANA / "dashboards" / home.name).is_file()
