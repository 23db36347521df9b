"""The lines that say how far linking, tokenizing or translating is."""

import pytest

from dragoman_training import time_left


def test_the_time_left_follows_from_the_rate_since_the_first_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two minutes of learning come first; then a thousand pairs take a second."""
    clock, lines = [0.0], list[str]()
    monkeypatch.setattr(time_left.time, "monotonic", lambda: clock[0])
    advance = time_left.progress_lines(461_000, "Linked", "pairs", lines.append)
    clock[0] = 120.0
    for done in range(10_000, 461_001, 10_000):
        advance(done)
        clock[0] += 10
    assert lines[0] == "Linked 10,000 of 461,000 pairs."
    assert lines[1] == "Linked 20,000 of 461,000 pairs; 7.3 min left."
    assert lines[-1] == "Linked 460,000 of 461,000 pairs; 0.0 min left."


def test_lines_come_every_few_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = [0.0], list[str]()
    monkeypatch.setattr(time_left.time, "monotonic", lambda: clock[0])
    advance = time_left.progress_lines(100, "Translated", "lines", lines.append)
    for done in range(1, 101):
        advance(done)
        clock[0] += 1
    assert len(lines) == 9
