"""What is expected of turns to come."""

from dragoman_server.engine.scheduling.pace import Pace


def test_a_turn_takes_at_best_what_the_quickest_of_late_took_a_row() -> None:
    pace = Pace()
    for _ in range(50):
        pace.on_turn(10, 0.01)
        pace.on_turn(10, 0.03)
    assert 0.01 <= pace.least_turn_seconds(10) < 0.015
