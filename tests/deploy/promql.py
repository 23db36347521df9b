"""Finds the metrics and the labels in a PromQL expression, as far as these tests need it."""

import re
from dataclasses import dataclass

_STRING = re.compile(r'"[^"]*"')
_RANGE = re.compile(r"\[[^\]]*\]")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SELECTOR = re.compile(rf"\b({_NAME})\b(?!\s*\()(?:\s*{{([^}}]*)}})?")
_KEYWORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan", "group_left", "group_right"})


@dataclass(frozen=True, kw_only=True)
class Selector:
    """A metric and the labels it is selected by."""

    metric: str
    labels: frozenset[str]


def selectors(expression: str) -> list[Selector]:
    """Every metric of the expression, in order."""
    bare = _GROUPING.sub(" ", _RANGE.sub("", _STRING.sub("", expression)))
    return [
        Selector(metric=metric, labels=_labels(matchers))
        for metric, matchers in _SELECTOR.findall(bare)
        if metric.lower() not in _KEYWORDS
    ]


def grouping_labels(expression: str) -> frozenset[str]:
    """Every label that the expression groups or matches series by."""
    return frozenset(
        name
        for labels in _GROUPING.findall(_STRING.sub("", expression))
        for name in re.findall(_NAME, labels)
    )


def _labels(matchers: str) -> frozenset[str]:
    return frozenset(re.findall(rf"({_NAME})\s*[=!]", matchers))
