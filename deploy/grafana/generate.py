"""Writes the dashboard from panels.yml; with --check it says whether that has been done.

A query there has neither the variables that narrow it nor the interval of its rates. Every metric gets the
instance, and the model where the server's own list of metrics says that it has one.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from dragoman_server.metrics.process import ProcessMetrics
from dragoman_server.metrics.translation import Metrics

FOLDER = Path(__file__).parent
SOURCE, DASHBOARD = FOLDER / "panels.yml", FOLDER / "dashboards" / "dragoman.json"

_DATASOURCE = {"type": "prometheus", "uid": "prometheus"}
_METRIC = re.compile(r"\b((?:dragoman|grpc_server|process)_\w+|up)\b(?:\{([^}]*)\})?")
_RATE = re.compile(r"\b(rate|increase)\((\w+\{[^}]*\})\)")
_WIDTH = 24


def server_wide() -> set[str]:
    """The metrics without a model's labels, as they are there before any model is."""
    registry = CollectorRegistry()
    Metrics(registry)
    registry.register(ProcessMetrics(list, 1))
    return {sample.name for family in registry.collect() for sample in family.samples}


def make_dashboard() -> dict[str, Any]:
    """The dashboard, in Grafana's own form."""
    source: dict[str, Any] = yaml.safe_load(SOURCE.read_text())
    kinds, without_model = source.pop("kinds"), server_wide()
    dashboard: dict[str, Any] = source.pop("dashboard")
    x = y = height = 0
    panels: list[dict[str, Any]] = []

    def add(panel: dict[str, Any], width: int, panel_height: int) -> None:
        nonlocal x, y, height
        if x + width > _WIDTH:
            x, y = 0, y + height
        place = {"h": panel_height, "w": width, "x": x, "y": y}
        panels.append({"id": len(panels) + 1, "gridPos": place, **panel})
        x, height = x + width, panel_height

    for row in source["rows"]:
        add({"type": "row", "title": row["title"], "collapsed": False, "panels": []}, _WIDTH, 1)
        for given in row.get("panels", ()):
            kind = kinds[given["type"]]
            targets = [
                {
                    "refId": chr(ord("A") + rank),
                    "datasource": _DATASOURCE,
                    "expr": expand(expression, without_model),
                    "legendFormat": legend,
                    **kind.get("target", {}),
                    **given.get("target", {}),
                }
                for rank, (legend, expression) in enumerate(given["queries"].items())
            ]
            defaults = {"unit": given["unit"], **kind.get("defaults", {}), **given.get("defaults", {})}
            # What a kind has and a panel must not is null there.
            defaults = {name: value for name, value in defaults.items() if value is not None}
            if custom := {**kind.get("custom", {}), **given.get("custom", {})}:
                defaults["custom"] = custom
            panel = {
                "type": given["type"],
                "title": given["title"],
                "description": given["description"],
                "datasource": _DATASOURCE,
                "fieldConfig": {"defaults": defaults, "overrides": given.get("overrides", [])},
                "options": {**kind["options"], **given.get("options", {})},
                "targets": targets,
            }
            if "transformations" in given:
                panel["transformations"] = given["transformations"]
            add(panel, *given["size"])
    return {**dashboard, "panels": panels}


def expand(expression: str, without_model: set[str]) -> str:
    """A query with the variables that narrow each of its metrics, and the interval of its rates."""

    def narrow(found: re.Match[str]) -> str:
        name, given = found[1], found[2]
        has_model = name.startswith("dragoman_") and name not in without_model
        matchers = [
            'instance=~"$instance"',
            *(['model=~"$model"'] if has_model else []),
            *([given] if given else []),
        ]
        return f"{name}{{{', '.join(matchers)}}}"

    return _RATE.sub(r"\1(\2[$__rate_interval])", _METRIC.sub(narrow, expression))


def main() -> None:
    written = json.dumps(make_dashboard(), indent=2, ensure_ascii=False) + "\n"
    if "--check" in sys.argv[1:]:
        if DASHBOARD.read_text() != written:
            sys.exit(
                f"{DASHBOARD} is not what {SOURCE} says: python deploy/grafana/generate.py writes it anew"
            )
    else:
        DASHBOARD.write_text(written)


if __name__ == "__main__":
    main()
