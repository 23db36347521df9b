"""The dashboard as it is deployed: its panels, and their expressions with the variables filled in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards" / "dragoman.json"


@dataclass(frozen=True, kw_only=True)
class Target:
    """One query of a panel."""

    expression: str
    legend: str

    def name(self, labels: Mapping[str, str]) -> str:
        """What a series with these labels is called."""
        name = self.legend
        for label, value in labels.items():
            name = name.replace(f"{{{{{label}}}}}", value)
        return name


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Something that is drawn."""

    title: str
    kind: str
    """As Grafana calls it, such as "timeseries"."""
    targets: tuple[Target, ...]


def read_panels(rate_interval: str) -> list[Panel]:
    """Of every server and model; rates are over `rate_interval`."""
    return [
        Panel(
            title=panel["title"],
            kind=panel["type"],
            targets=tuple(
                Target(expression=fill_in(target["expr"], rate_interval), legend=target["legendFormat"])
                for target in panel["targets"]
            ),
        )
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        if panel["type"] != "row"
    ]


def read_annotations(rate_interval: str) -> list[str]:
    """The expressions whose values are moments, in milliseconds."""
    found = json.loads(DASHBOARD.read_text())["annotations"]["list"]
    return [fill_in(annotation["expr"], rate_interval) for annotation in found]


def fill_in(expression: str, rate_interval: str) -> str:
    """As Grafana does where everything is chosen."""
    for variable, value in {"$instance": ".*", "$model": ".*", "$__rate_interval": rate_interval}.items():
        expression = expression.replace(variable, value)
    return expression
