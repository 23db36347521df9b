"""How many rows bulk may have, of turns whose cost is known by hand."""

from collections.abc import Callable, Iterable

import pytest

from dragoman_server.engine.scheduling.pace import MAX_SURPRISE, MEMORY_TURNS, MIN_TURNS, TurnCost

ROWS = (10, 20, 30, 40)


def after(turns: Iterable[int], seconds: Callable[[int], float], cost: TurnCost | None = None) -> TurnCost:
    cost = cost or TurnCost()
    for rows in turns:
        cost.observe(rows, seconds(rows))
    return cost


def test_as_long_as_nothing_is_known_a_turn_costs_nothing_but_its_rows() -> None:
    assert TurnCost().rows_beside(5, 3.0) == pytest.approx(10)
    assert TurnCost().seconds(5) == 0


def test_after_a_turn_far_quicker_than_any_before_these_are_forgotten() -> None:
    cost = after([10] * 3, lambda _: 5.0)
    cost.observe(10, 0.01)
    assert cost.seconds(10) == pytest.approx(0.01)


def test_a_turn_costs_nothing_but_its_rows_until_several_told_otherwise() -> None:
    def seconds(rows: int) -> float:
        return 0.004 + 0.001 * rows

    turns = ROWS * 8
    assert after(turns[: MIN_TURNS - 1], seconds).rows_beside(5, 3.0) == pytest.approx(10)
    # Five rows take 9 ms, and eighteen more 27.
    assert after(turns, seconds).rows_beside(5, 3.0) == pytest.approx(18)
    assert after(turns, seconds).rows_beside(5, 1.0) == 0


def test_rows_that_take_turns_of_their_own_are_fewer() -> None:
    cost = after(ROWS * 8, lambda rows: 0.009 + 0.001 * rows)
    # One row takes 10 ms, and in one turn 20 rows more take 20 ms more.
    assert cost.rows_beside(1, 3.0) == pytest.approx(20)
    assert cost.rows_beside(1, 3.0, num_more_turns=1) == pytest.approx(11)
    assert cost.rows_beside(1, 3.0, num_more_turns=3) == 0


def test_what_turns_took_long_ago_is_forgotten() -> None:
    cost = after(ROWS * 100, lambda rows: 0.004 + 0.001 * rows)
    after(ROWS * MEMORY_TURNS, lambda rows: 0.020 + 0.001 * rows, cost)
    # Five rows take 25 ms, and fifty more 75.
    assert cost.rows_beside(5, 3.0) == pytest.approx(50, rel=0.05)


def test_a_machine_that_stood_still_for_a_moment_changes_little() -> None:
    cost = after(ROWS * 100, lambda rows: 0.004 + 0.001 * rows)
    known = cost.rows_beside(5, 3.0)
    after([25], lambda rows: 60.0, cost)
    # As much as a turn that took MAX_SURPRISE times as long: 3 * 29 ms more in one of MEMORY_TURNS.
    later = 2 * ((0.004 + (MAX_SURPRISE - 1) * 0.029 / MEMORY_TURNS) / 0.001 + 5)
    assert known < cost.rows_beside(5, 3.0) == pytest.approx(later, rel=0.01)
