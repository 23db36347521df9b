"""Who joins, who leaves and who stands where, by numbers worked out by hand."""

from collections.abc import Sequence

import pytest

from dragoman_server.engine.request import Priority, SearchOptions, Sentence
from dragoman_server.engine.scheduling.grouping import group_by_length
from dragoman_server.engine.scheduling.lane import (
    MAX_GATHERING,
    PATIENCE,
    WINDOW,
    Lane,
    Regrouping,
)
from dragoman_server.engine.scheduling.padding import padded_positions
from dragoman_server.engine.scheduling.room import Room
from dragoman_server.engine.ticket import Ticket

INTERACTIVE, BULK = Priority.INTERACTIVE, Priority.BULK


def ticket(length: int, beam_size: int = 1, priority: Priority = INTERACTIVE) -> Ticket:
    options = SearchOptions(beam_size=beam_size, num_hypotheses=1, length_penalty=1.0, max_output_tokens=9)
    sentence = Sentence(source=(3,) * length, options=options, priority=priority)
    return Ticket(sentence=sentence, accepted_at=0.0)


def wait(lane: Lane, *lengths: int, priority: Priority = INTERACTIVE) -> list[Ticket]:
    tickets = [ticket(length, lane.beam_size, priority) for length in lengths]
    for each in tickets:
        lane.waiting.add(each)
    return tickets


def room(
    rows: int = 320,
    *,
    positions: int = 16_384,
    bulk_rows: int = 240,
    bulk_positions: int = 16_384,
    lone_bulk: bool = False,
) -> Room:
    return Room(
        rows=rows,
        positions=positions,
        bulk_rows=bulk_rows,
        bulk_positions=bulk_positions,
        lone_bulk=lone_bulk,
    )


def step(lane: Lane, room: Room = room()) -> Regrouping | None:  # noqa: B008
    return lane.settle(group_by_length(lane.admit(room)))


def leave_waiting(lane: Lane, room: Room) -> None:
    assert lane.admit(room) == []
    lane.settle([])


def priorities(tickets: Sequence[Ticket]) -> list[Priority]:
    return [each.sentence.priority for each in tickets]


def lengths(regrouping: Regrouping | None) -> list[int]:
    assert regrouping is not None
    return sorted(len(ticket.sentence.source) for ticket in regrouping.tickets)


def test_padding_goes_to_the_next_multiple_of_eight() -> None:
    assert [padded_positions(length) for length in (1, 8, 9, 16, 17)] == [8, 8, 16, 16, 24]


def test_everyone_joins_where_there_is_room() -> None:
    lane = Lane(2)
    tickets = wait(lane, 5, 9, 2)
    regrouping = step(lane, room(20))
    assert regrouping is not None
    assert set(regrouping.tickets) == set(tickets)
    assert regrouping.source_positions == 16
    assert regrouping.origin_S.tolist() == [0, 1, 2]
    assert (len(lane.waiting), lane.num_running) == (0, 3)


def test_nothing_is_regrouped_while_nobody_comes_or_goes() -> None:
    lane = Lane(2)
    wait(lane, 5, 9, 2)
    step(lane)
    assert step(lane) is None


def test_rows_are_the_budget() -> None:
    lane = Lane(5)
    wait(lane, 4, 4, 4, 4)
    assert len(lengths(step(lane, room(19)))) == 3
    assert len(lane.waiting) == 1


def test_padded_positions_are_the_budget() -> None:
    lane = Lane(1)
    wait(lane, 30, 4, 4)
    # Two sentences padded to 32 fill 64 positions; a third does not fit.
    assert lengths(step(lane, room(positions=64))) == [4, 30]


def test_newcomers_fill_gaps_and_stayers_keep_their_places() -> None:
    lane = Lane(1)
    a, b, c, d = wait(lane, 8, 8, 8, 8)
    step(lane)
    lane.remove({b})
    [e, f] = wait(lane, 8, 8)
    regrouping = step(lane)
    assert regrouping is not None
    assert regrouping.origin_S.tolist() == [0, 4, 2, 3, 5]
    assert regrouping.tickets == (a, e, c, d, f)


def test_the_last_ones_move_into_gaps_when_a_batch_shrinks() -> None:
    lane = Lane(1)
    a, b, c, d, e = wait(lane, 8, 8, 8, 8, 8)
    step(lane)
    lane.remove({a, c})
    regrouping = step(lane)
    assert regrouping is not None
    assert regrouping.origin_S.tolist() == [3, 1, 4]
    assert regrouping.tickets == (d, b, e)


def test_few_gather_beside_a_large_batch_and_join_in_a_group_or_after_some_steps() -> None:
    lane = Lane(1)
    wait(lane, *[8] * 12)
    step(lane)
    wait(lane, 8, 8)
    # Two are fewer than a quarter of twelve: they wait for others.
    assert [lane.admit(room()) for _ in range(3)] == [[], [], []]
    assert len(lengths(step(lane))) == 14
    wait(lane, 8, 8, 8, 8)
    assert len(lengths(step(lane))) == 18


def test_nobody_gathers_where_nobody_runs_or_few_do() -> None:
    lane = Lane(1)
    wait(lane, 8)
    assert len(lengths(step(lane))) == 1
    wait(lane, 8)
    assert len(lengths(step(lane))) == 2


def test_those_who_gather_join_at_once_where_the_batch_ends() -> None:
    lane = Lane(1)
    running = wait(lane, *[8] * 12)
    step(lane)
    wait(lane, 8)
    assert lane.admit(room()) == []
    lane.remove(set(running))
    assert len(lengths(step(lane))) == 1


def test_overdue_bulk_does_not_gather() -> None:
    lane = Lane(1)
    wait(lane, *[8] * 12)
    step(lane)
    [bulk] = wait(lane, 8, priority=BULK)
    assert lane.admit(room(), bulk_first=True) == [bulk]


def test_a_batch_is_trimmed_only_if_a_quarter_is_saved() -> None:
    lane = Lane(1)
    long, middle, short = wait(lane, 40, 32, 20)
    step(lane)
    lane.remove({long})
    regrouping = step(lane)
    assert regrouping is not None
    assert regrouping.source_positions == 40
    lane.remove({middle})
    regrouping = step(lane)
    assert regrouping is not None
    assert (regrouping.tickets, regrouping.source_positions) == ((short,), 24)


def test_a_lane_that_ran_empty_begins_anew() -> None:
    lane = Lane(1)
    lane.remove(set(wait_and_run(lane, 40, 40)))
    [short] = wait(lane, 4)
    regrouping = step(lane)
    assert regrouping is not None
    assert regrouping.origin_S.tolist() == [0]
    assert (regrouping.tickets, regrouping.source_positions) == ((short,), 8)


def wait_and_run(lane: Lane, *sizes: int) -> list[Ticket]:
    tickets = wait(lane, *sizes)
    step(lane)
    return tickets


def test_a_group_that_could_not_be_encoded_takes_no_place() -> None:
    lane = Lane(1)
    wait(lane, 60, 4)
    [_, short] = group_by_length(lane.admit(room()))
    assert lane.num_running == 2
    regrouping = lane.settle([short])
    assert regrouping is not None
    assert (regrouping.tickets, regrouping.source_positions) == (tuple(short), 8)
    assert lane.num_running == 1


def test_who_is_removed_while_joining_is_gone_at_once() -> None:
    lane = Lane(1)
    wait(lane, 40, 4)
    [long, short] = lane.admit(room())
    assert lane.remove({long}) == {long}
    assert lane.running == [short]
    assert lane.remove({short}) == {short}
    assert (lane.num_running, lane.settle([])) == (0, None)


def test_a_crowded_lane_waits_for_three_quarters_of_its_places() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 8)
    wait(lane, *[8] * 7)
    leave_waiting(lane, room(8))
    for gone in running[:5]:
        lane.remove({gone})
        leave_waiting(lane, room(8))
    lane.remove({running[5]})
    assert len(lengths(step(lane, room(8)))) == 8


def test_who_waits_for_no_more_places_than_are_free_does_not_wait_for_others() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 8)
    wait(lane, 8, 8)
    lane.remove(set(running[:2]))
    assert len(lengths(step(lane, room(8)))) == 8


def test_a_crowd_does_not_wait_for_long_for_those_who_run_for_long() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 8)
    wait(lane, *[8] * 20)
    leave_waiting(lane, room(8))
    # Less than a quarter of the places is too little, however long it lasts.
    lane.remove({running[0]})
    for _ in range(3 * PATIENCE):
        leave_waiting(lane, room(8))
    for gone in (running[1], running[2]):
        lane.remove({gone})
        for _ in range(PATIENCE):
            leave_waiting(lane, room(8))
        regrouping = step(lane, room(8))
        assert len(lengths(regrouping)) == 8
        # Those who join are waited for anew.
        assert regrouping is not None
        lane.remove({regrouping.tickets[0]})


def test_a_crowd_that_comes_fills_what_is_free_and_only_who_is_left_waits_for_more() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 5)
    wait(lane, *[8] * 7)
    assert len(lengths(step(lane, room(8)))) == 8
    lane.remove(set(running[:3]))
    leave_waiting(lane, room(8))
    # Who comes behind them waits with them, and once nobody is left none of them does.
    wait(lane, 8)
    leave_waiting(lane, room(8))
    lane.remove(set(lane.waiting))
    leave_waiting(lane, room(8))
    wait(lane, *[8] * 4)
    assert len(lengths(step(lane, room(8)))) == 8


def test_few_who_are_left_waiting_beside_many_wait_no_longer_than_a_crowd() -> None:
    lane = Lane(1)
    bulk = wait(lane, *[8] * 24, priority=BULK)
    running = wait_and_run(lane, *[8] * 40)
    crowd = wait(lane, *[8] * 20)
    leave_waiting(lane, room(64))
    lane.remove(set(crowd[11:]))
    # Eleven wait for ten places, 30 run beside bulk: a quarter of the 40 that bulk leaves is free.
    lane.remove(set(running[-10:]))
    turns = 0
    while len(lane.waiting) == 11:
        step(lane, room(64))
        turns += 1
    assert set(bulk) < set(lane.running)
    assert PATIENCE < turns <= PATIENCE + MAX_GATHERING + 1


def test_in_a_crowd_those_that_add_no_padding_join_first() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, 16, 16, 16, 16)
    wait(lane, 60, 3, 15, 9, 8)
    lane.remove(set(running[:3]))
    assert lengths(step(lane, room(4))) == [8, 9, 15, 16]


def test_a_sentence_is_overtaken_by_a_bounded_number_of_later_ones() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, 16, 16, 16, 16)
    [long] = wait(lane, 60)
    num_overtaking = 0
    while long in lane.waiting:
        wait(lane, *[16] * 4)
        lane.remove(set(running[:3]))
        regrouping = step(lane, room(4))
        assert regrouping is not None
        num_overtaking += len(set(regrouping.tickets) - {long} - set(running))
        running = list(regrouping.tickets)
        assert num_overtaking < WINDOW * 4
    assert num_overtaking >= WINDOW * 4 - 4


def test_nobody_waits_longer_because_of_a_length_that_few_have() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[16] * 8)
    rare = wait(lane, *[60, 16, 16, 16] * 10)[::4]
    num_turns = 0
    while set(rare) & set(lane.waiting):
        wait(lane, *[16] * 8)
        lane.remove(set(running[:6]))
        regrouping = step(lane, room(8))
        assert regrouping is not None
        running = list(regrouping.tickets)
        num_turns += 1
    # In the order of arrival they would have needed 40 / 6 turns, and the window holds 32 more.
    assert num_turns <= (40 + WINDOW * 8) // 6


def test_an_overdue_sentence_that_does_not_fit_holds_the_others_back() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, 16, 16, 16, 16)
    [long] = wait(lane, 64)
    wait(lane, *[16] * 40)

    def run_without(leaving: set[Ticket]) -> list[Ticket]:
        lane.remove(leaving)
        regrouping = step(lane, room(4, positions=64))
        assert regrouping is not None
        return list(regrouping.tickets)

    for _ in range(WINDOW * 4 // 3):
        running = run_without(set(running[:3]))
        assert len(running) == 4
    for left in (3, 2, 1):
        running = run_without({running[0]})
        assert len(running) == left
    assert run_without({running[0]}) == [long]


@pytest.mark.parametrize(("continuous", "expected"), [(True, 2), (False, 1)])
def test_request_level_batching_ends_a_batch_before_the_next_begins(continuous: bool, expected: int) -> None:
    lane = Lane(1, continuous=continuous)
    wait_and_run(lane, 8)
    wait(lane, 8)
    step(lane)
    assert lane.num_running == expected


def test_who_is_finished_leaves_a_continuous_batch_at_once_and_the_other_with_the_last() -> None:
    for continuous in (True, False):
        lane = Lane(1, continuous=continuous)
        one, other = wait_and_run(lane, 8, 8)
        assert lane.leaving({one}) == ([one] if continuous else [])
        assert lane.leaving({one, other}) == [one, other]
        lane.remove({other})
        assert lane.leaving({one, other}) == [one]


def test_interactive_sentences_go_before_bulk() -> None:
    lane = Lane(1)
    wait(lane, 8, 8, priority=BULK)
    wait(lane, 8, 8)
    assert priorities(lane.admit(room(3))) == [INTERACTIVE, INTERACTIVE, BULK]


def test_bulk_leaves_its_share_free_for_who_comes_next() -> None:
    lane = Lane(2)
    wait(lane, *[8] * 9, priority=BULK)
    assert len(lengths(step(lane, room(12, bulk_rows=8)))) == 4
    wait(lane, 8, 8, 8)
    # Two places are free, and bulk has all it may have.
    assert priorities(lane.admit(room(12, bulk_rows=8))) == [INTERACTIVE, INTERACTIVE]


def test_bulk_shares_the_positions_too() -> None:
    lane = Lane(1)
    wait(lane, *[32] * 9, priority=BULK)
    assert len(lengths(step(lane, room(positions=256, bulk_positions=192)))) == 6
    wait(lane, 30, 30, 30)
    # Positions for two are free, and bulk has all it may have.
    assert priorities(lane.admit(room(positions=256, bulk_positions=192))) == [INTERACTIVE, INTERACTIVE]


def test_one_bulk_sentence_may_be_larger_than_the_share_of_bulk() -> None:
    small = {"bulk_rows": 3, "bulk_positions": 16}
    lane = Lane(4)
    wait(lane, 32, 32, priority=BULK)
    assert lane.admit(room(**small)) == []
    assert len(lane.admit(room(**small, lone_bulk=True))) == 1


def test_bulk_gets_no_place_that_a_crowd_of_interactive_sentences_waits_for() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 64)
    wait(lane, *[8] * 100)
    wait(lane, 8, priority=BULK)
    leave_waiting(lane, room(64, bulk_rows=48))
    lane.remove(set(running[:47]))
    assert step(lane, room(64, bulk_rows=48)) is not None
    assert len(lane.waiting) == 101
    lane.remove({running[47]})
    assert priorities(lane.admit(room(64, bulk_rows=48))) == [INTERACTIVE] * 48


def test_bulk_takes_no_positions_that_an_interactive_sentence_waits_for() -> None:
    lane = Lane(1)
    tiny = room(8, positions=64)
    wait(lane, 8, 8, 8, priority=BULK)
    running = list(lane.admit(tiny))
    step_after_admission(lane)
    [long] = wait(lane, 32)
    wait(lane, 8, priority=BULK)
    lane.remove({running[0]})
    # Three of 32 positions are too many.
    assert lane.admit(tiny) == []
    step_after_admission(lane)
    lane.remove({running[1]})
    assert lane.admit(tiny) == [long]


def step_after_admission(lane: Lane) -> None:
    lane.settle(group_by_length(lane.joining))


def test_overdue_bulk_goes_first() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 8)
    wait(lane, *[8] * 8)
    wait(lane, *[8] * 8, priority=BULK)
    leave_waiting(lane, room(8))
    # Half of the places is too little for the crowd, for whom other lanes would wait, too.
    lane.remove(set(running[:4]))
    leave_waiting(lane, room(8))
    # The share of bulk leaves it one place, and interactive sentences get the others.
    assert priorities(lane.admit(room(8, bulk_rows=1), bulk_first=True)) == [BULK] + [INTERACTIVE] * 3


def test_overdue_bulk_does_not_wait_for_more_places() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, *[8] * 8)
    wait(lane, *[8] * 8, priority=BULK)
    leave_waiting(lane, room(8))
    lane.remove({running[0]})
    assert lane.admit(room(8)) == []
    assert priorities(lane.admit(room(8), bulk_first=True)) == [BULK]


def test_overdue_bulk_that_does_not_fit_holds_interactive_sentences_back() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, 8, 8, 8)
    [long] = wait(lane, 32, priority=BULK)
    wait(lane, 8)
    assert lane.admit(room(8, positions=64), bulk_first=True) == []
    step_after_admission(lane)
    lane.remove(set(running[:2]))
    assert long in lane.admit(room(8, positions=64), bulk_first=True)


def test_overdue_bulk_holds_nobody_back_from_where_it_may_not_go() -> None:
    lane = Lane(1)
    wait(lane, 8, 8, priority=BULK)
    step(lane, room(8, bulk_rows=1))
    wait(lane, 8)
    assert priorities(lane.admit(room(8, bulk_rows=1), bulk_first=True)) == [INTERACTIVE]
