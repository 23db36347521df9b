"""What an engine's budgets leave for a lane."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much a lane may hold, those that it holds already included."""

    rows: int
    """Rows of its sentences."""
    bulk_rows: int
    """Rows of its bulk sentences among them."""
    positions: int
    """Source positions, padding included."""
