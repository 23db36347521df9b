"""The allowances of all callers, and the file of their limits."""

from collections.abc import Collection, Mapping
from pathlib import Path

from dragoman_server.metrics.callers import CallerMetrics
from dragoman_server.service.allowances.allowance import Allowance, Clock
from dragoman_server.service.allowances.caller_limits import CallerLimits, limits_of, read_limits

FORGETS_FROM = 1000
"""Callers that are known before any is forgotten."""


class Allowances:
    """One for each caller who has called since the server began."""

    def __init__(self, path: Path | None, metrics: CallerMetrics, clock: Clock | None = None) -> None:
        """`path`: a file as `read_limits` reads it, read by `read`; None limits nobody."""
        self._path = path
        self._clock = clock or Clock()
        self._limits: Mapping[str, CallerLimits] = {}
        self._by_name: dict[str | None, Allowance] = {}
        self._most_known = FORGETS_FROM
        self._metrics = metrics

    def read(self, known_names: Collection[str] | None) -> Mapping[str, CallerLimits]:
        """What the file holds now, for `use`. Raises LimitFileError."""
        return {} if self._path is None else read_limits(self._path, known_names)

    def use(self, limits: Mapping[str, CallerLimits]) -> None:
        """Holds callers to these from now on. What they have had counts on."""
        self._limits = limits
        for name, allowance in self._by_name.items():
            allowance.limits = limits_of(name, limits)

    def of(self, name: str | None) -> Allowance:
        """A caller's; of everybody's, where nobody is asked who they are."""
        allowance = self._by_name.get(name)
        if allowance is None:
            if len(self._by_name) >= self._most_known:
                self._forget_unused()
            allowance = Allowance(name, limits_of(name, self._limits), self._metrics, self._clock)
            self._by_name[name] = allowance
        return allowance

    def _forget_unused(self) -> None:
        """Those of callers of whom nothing counts. Names of certificates come and go without end."""
        self._by_name = {
            name: allowance for name, allowance in self._by_name.items() if not allowance.is_unused
        }
        # Where many are in use it is not tried again at each new one.
        self._most_known = max(FORGETS_FROM, 2 * len(self._by_name))
