"""How much the engine takes on."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EngineLimits:
    """Budgets of an engine. Raises ValueError, naming the field, for one that leaves no room at all."""

    max_rows: int = 320
    """Most rows, sentences times beam, that a step decodes together."""
    max_source_positions: int = 16_384
    """Most source positions, padding included, that a step attends to."""
    max_queue: int = 10_000
    """Most sentences that wait for a place in a batch."""
    max_beam_size: int = 16
    """Widest beam accepted."""
    continuous: bool = True
    """Whether sentences join a running batch; otherwise a batch ends before the next begins."""

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_source_positions", "max_queue", "max_beam_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.max_beam_size > self.max_rows:
            raise ValueError(
                f"max_beam_size is {self.max_beam_size}, more rows than max_rows = {self.max_rows} allows"
            )
