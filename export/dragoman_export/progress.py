"""How far an export is: its stages, numbered, one line each."""

from collections.abc import Callable, Sequence


class Stages:
    """Tells each stage as `[3/9] fp32: making the graphs`, and what was found as it is."""

    def __init__(self, total: int, report: Callable[[str], None]) -> None:
        self._total = total
        self._done = 0
        self.tell = report
        """Takes a line on what was found."""

    def begin(self, stage: str) -> None:
        """Tells the next stage, before it begins."""
        self._done += 1
        assert self._done <= self._total
        self.tell(f"[{self._done}/{self._total}] {stage}")


def num_stages(precisions: Sequence[str], *, has_shortlist: bool) -> int:
    """Stages of an export: PyTorch, the graphs, and each precision's writing and checking."""
    traces = bool({"fp32", "int8"} & set(precisions)) + ("fp16" in precisions)
    quantizations = "int8" in precisions
    per_precision = 3 if has_shortlist else 2
    return 1 + traces + quantizations + has_shortlist + per_precision * len(precisions)
