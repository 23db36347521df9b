"""What is expected of turns to come."""

import math

from dragoman_server.engine.pace import Pace


def test_rows_are_as_many_as_recent_turns_had_time_for_on_average_not_at_best() -> None:
    pace = Pace()
    assert pace.rows_within(0.02) == math.inf
    for _ in range(50):
        pace.on_turn(10, 0.01)
        pace.on_turn(10, 0.03)
    # A row takes two milliseconds in the mean.
    assert 9 < pace.rows_within(0.02) < 11
    assert 0.01 <= pace.least_turn_seconds(10) < 0.015
