"""How much the engine takes on."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """Budgets of an engine. Raises ValueError, naming the field, for one that leaves no room at all."""

    max_rows: int = 320
    """Most rows, sentences times beam, that are decoded at a time, of all beam sizes together."""
    max_source_tokens: int = 16_384
    """Most source tokens, padding included, that are attended to at a time."""
    max_bulk_share: float = 0.75
    """Largest share of `max_rows` that bulk sentences take: the rest is free for interactive ones at once."""
    max_queue: int = 10_000
    """Most sentences that wait for a place in a batch."""
    max_beam_size: int = 16
    """Widest beam accepted."""
    continuous: bool = True
    """Whether sentences join a running batch; otherwise a batch ends before the next begins."""

    @property
    def max_bulk_rows(self) -> int:
        """Most rows of bulk sentences."""
        return math.floor(self.max_rows * self.max_bulk_share)

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_source_tokens", "max_queue", "max_beam_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 < self.max_bulk_share <= 1:
            raise ValueError(f"max_bulk_share is {self.max_bulk_share}; it must be above 0 and at most 1")
        if self.max_beam_size > self.max_rows:
            raise ValueError(
                f"max_beam_size is {self.max_beam_size}, more rows than max_rows = {self.max_rows} allows"
            )
