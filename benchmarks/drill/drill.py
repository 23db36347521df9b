"""What a drill is given, and what it finds: figures, and promises that hold or do not."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class Check:
    """A promise, and whether it held."""

    promise: str
    """What must be so."""
    holds: bool
    """Whether it was."""
    found: str
    """What was seen."""


@dataclass(kw_only=True)
class Drill:
    """One run of a drill."""

    models: Path
    """Folder of bundles that the servers have."""
    model: str
    """NAME/VERSION of the one that translates."""
    source: str
    """Its source language."""
    target: str
    """Its target language."""
    seconds: float
    """How long there are faults, about."""
    folder: Path
    """For whatever it writes."""
    console: Console
    """Where it tells how it fares."""
    checks: list[Check] = field(default_factory=list)
    """What was checked so far."""
    figures: dict[str, float | str] = field(default_factory=dict)
    """What was counted or measured, by its name."""

    def __post_init__(self) -> None:
        self.started_at = time.monotonic()

    def say(self, text: str) -> None:
        """Tells what happens."""
        elapsed = time.monotonic() - self.started_at
        self.console.print(f"{elapsed:6.1f} s  {text}", markup=False, soft_wrap=True)

    def check(self, promise: str, holds: bool, found: object = "") -> None:
        """Notes whether a promise holds."""
        check = Check(promise=promise, holds=bool(holds), found=str(found))
        self.checks.append(check)
        self.say(f"{'held' if check.holds else 'BROKEN'}: {promise}" + (f" ({found})" if check.found else ""))

    def figure(self, name: str, value: float | str) -> None:
        """Notes a figure."""
        self.figures[name] = value
        self.say(f"{name}: {value:g}" if isinstance(value, float) else f"{name}: {value}")

    @property
    def holds(self) -> bool:
        """Whether every promise held; False where none was checked."""
        return bool(self.checks) and all(check.holds for check in self.checks)
