import re
import subprocess
from typing import Any

import pytest
from tests.deploy.conftest import ROOT, check_names, metrics_in, needs_promtool

from dragoman_server.metrics.series import LATENCY_BUCKETS

FOLDER = ROOT / "deploy" / "prometheus"


def test_prometheus_scrapes_the_server_by_its_name_and_metrics_port(
    prometheus: dict[str, Any], service: dict[str, Any], options: dict[str, Any]
) -> None:
    [scrape] = prometheus["scrape_configs"]
    [alias] = service["networks"]["default"]["aliases"]
    assert scrape["static_configs"] == [{"targets": [f"{alias}:{options['metrics_port']}"]}]
    assert scrape.get("metrics_path", "/metrics") == "/metrics"


def test_prometheus_finds_its_files_where_its_image_looks(
    compose: dict[str, Any], prometheus: dict[str, Any]
) -> None:
    assert "./deploy/prometheus:/etc/prometheus:ro" in compose["services"]["prometheus"]["volumes"]
    assert "command" not in compose["services"]["prometheus"], "the image's own reads /etc/prometheus"
    for name in prometheus["rule_files"]:
        assert (FOLDER / name).is_file()


def test_rules_ask_for_what_the_server_exports(
    rules: list[dict[str, Any]], exported: dict[str, frozenset[str]], prometheus: dict[str, Any]
) -> None:
    known = dict(exported)
    for rule in rules:
        check_names(rule["expr"], known)
        if "record" in rule:
            known[rule["record"]] = frozenset().union(*(known[name] for name in metrics_in(rule["expr"])))
    jobs = {scrape["job_name"] for scrape in prometheus["scrape_configs"]}
    assert jobs == {"dragoman"}, "DragomanDown names it"


@needs_promtool
def test_promtool_accepts_configuration_and_rules() -> None:
    subprocess.run(["promtool", "check", "config", FOLDER / "prometheus.yml"], check=True)


@needs_promtool
@pytest.mark.parametrize("name", ["alerts", "alerts_over_days"])
def test_alerts_fire_when_they_should_and_only_then(name: str) -> None:
    subprocess.run(["promtool", "test", "rules", ROOT / "tests" / "deploy" / f"{name}.yml"], check=True)


def test_the_objective_is_the_same_limit_wherever_it_stands(
    rules: list[dict[str, Any]], dashboard: dict[str, Any]
) -> None:
    expressions = [rule["expr"] for rule in rules]
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    limits = {
        float(limit)
        for expression in expressions
        for limit in re.findall(r'request_seconds_bucket{[^}]*le="([^"]*)"', expression)
    }
    # What p99 is divided by, in the estimates of what there is room for.
    limits |= {
        float(limit)
        for expression in expressions
        for limit in re.findall(r"(?:p99_5m|\)\)\)) / ([0-9.]+)\s*\* clamp_min\(1 - ", expression)
    }
    [limit] = limits
    assert limit in LATENCY_BUCKETS
