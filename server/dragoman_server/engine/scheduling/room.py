"""What an engine's budgets leave for a lane."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much a lane may hold, those that it holds already included."""

    rows: int
    """Rows of its sentences."""
    positions: int
    """Source positions of its sentences, padding included."""
    bulk_rows: int
    """Rows of its bulk sentences among them."""
    bulk_positions: int
    """Source positions of its bulk sentences, padding included."""
    lone_bulk: bool
    """Whether one bulk sentence may have more than that: one too large for bulk's share runs by itself."""

    def holds(self, num_sentences: int, *, rows: int, positions: int) -> bool:
        """Whether `num_sentences` fit that take `rows` and `positions` each."""
        return num_sentences * rows <= self.rows and num_sentences * positions <= self.positions

    def holds_bulk(self, num_sentences: int, *, rows: int, positions: int) -> bool:
        """Whether so many bulk sentences fit into bulk's share."""
        fit = num_sentences * rows <= self.bulk_rows and num_sentences * positions <= self.bulk_positions
        return fit or (self.lone_bulk and num_sentences == 1)
