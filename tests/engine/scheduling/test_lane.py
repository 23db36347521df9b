"""Who joins and when, who leaves, who stands where, and who is encoded with whom, worked out by hand."""

from itertools import combinations, count, pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.house import ticket

from dragoman_server.engine.decoder import padded_positions
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.budget import Amount, Room
from dragoman_server.engine.scheduling.joining import (
    CROWD_WEIGHT,
    OVERHEAD_SENTENCES,
    WEIGHTS,
    WINDOW,
    Patience,
    choose,
    group_by_length,
)
from dragoman_server.engine.scheduling.lane import Lane, Regrouping
from dragoman_server.engine.ticket import Ticket

INTERACTIVE, BULK = Priority
ARRIVALS = count()


def wait(lane: Lane, *lengths: int, priority: Priority = INTERACTIVE) -> list[Ticket]:
    tickets = [
        ticket(length, lane.beam_size, priority=priority, arrival=next(ARRIVALS)) for length in lengths
    ]
    for each in tickets:
        lane.waiting.add(each)
    return tickets


def admit(lane: Lane, rows: int = 320, positions: int = 16_384) -> list[Ticket]:
    """Lets those join for whom a lane that has so much to itself has room."""
    free = Amount(rows - lane.num_rows, positions - lane.num_positions)
    joining = choose(lane, Priority.INTERACTIVE, [], Room(free=free, bulk=None), max_rows=rows)
    lane.join(joining)
    return joining


def step(lane: Lane, rows: int = 320, positions: int = 16_384) -> Regrouping:
    regrouping = lane.settle(group_by_length(admit(lane, rows, positions)))
    assert regrouping is not None
    return regrouping


def lengths(regrouping: Regrouping) -> list[int]:
    return sorted(each.length for each in regrouping.tickets)


def test_padding_goes_to_the_next_multiple_of_eight() -> None:
    assert [padded_positions(length) for length in (1, 8, 9, 16, 17)] == [8, 8, 16, 16, 24]


def test_everyone_joins_where_there_is_room() -> None:
    lane = Lane(2)
    tickets = wait(lane, 5, 9, 2)
    regrouping = step(lane, 20)
    assert set(regrouping.tickets) == set(tickets)
    assert regrouping.source_positions == 16
    assert regrouping.origin_S.tolist() == [0, 1, 2]
    assert (len(lane.waiting), lane.num_running) == (0, 3)


def test_rows_are_the_budget() -> None:
    lane = Lane(5)
    wait(lane, 4, 4, 4, 4)
    assert len(lengths(step(lane, 19))) == 3
    assert len(lane.waiting) == 1


def test_padded_positions_are_the_budget() -> None:
    lane = Lane(1)
    wait(lane, 30, 4, 4)
    # Two sentences padded to 32 fill 64 positions; a third does not fit.
    assert lengths(step(lane, positions=64)) == [4, 30]


def test_newcomers_fill_gaps_and_stayers_keep_their_places() -> None:
    lane = Lane(1)
    a, b, c, d = wait(lane, 8, 8, 8, 8)
    step(lane)
    lane.remove({b})
    [e, f] = wait(lane, 8, 8)
    regrouping = step(lane)
    assert regrouping.origin_S.tolist() == [0, 4, 2, 3, 5]
    assert regrouping.tickets == (a, e, c, d, f)


def test_the_last_ones_move_into_gaps_when_a_batch_shrinks() -> None:
    lane = Lane(1)
    a, b, c, d, e = wait(lane, 8, 8, 8, 8, 8)
    step(lane)
    lane.remove({a, c})
    regrouping = step(lane)
    assert regrouping.origin_S.tolist() == [3, 1, 4]
    assert regrouping.tickets == (d, b, e)


def test_a_batch_is_trimmed_only_if_a_quarter_is_saved() -> None:
    lane = Lane(1)
    long, middle, short = wait(lane, 40, 32, 20)
    step(lane)
    lane.remove({long})
    regrouping = step(lane)
    assert regrouping.source_positions == 40
    lane.remove({middle})
    regrouping = step(lane)
    assert (regrouping.tickets, regrouping.source_positions) == ((short,), 24)


def wait_and_run(lane: Lane, *sizes: int) -> list[Ticket]:
    tickets = wait(lane, *sizes)
    step(lane)
    return tickets


def test_a_group_that_could_not_be_encoded_takes_no_place() -> None:
    lane = Lane(1)
    wait(lane, 60, 4)
    [_, short] = group_by_length(admit(lane))
    assert lane.num_running == 2
    regrouping = lane.settle([short])
    assert regrouping is not None
    assert (regrouping.tickets, regrouping.source_positions) == (tuple(short), 8)
    assert lane.num_running == 1


def test_in_a_crowd_those_that_add_no_padding_join_first() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, 16, 16, 16, 16)
    wait(lane, 60, 3, 15, 9, 8)
    lane.remove(set(running[:3]))
    assert lengths(step(lane, 4)) == [8, 9, 15, 16]


def test_a_sentence_is_overtaken_by_a_bounded_number_of_later_ones() -> None:
    lane = Lane(1)
    running = wait_and_run(lane, 16, 16, 16, 16)
    [long] = wait(lane, 60)
    num_overtaking = 0
    while long in lane.waiting:
        wait(lane, *[16] * 4)
        lane.remove(set(running[:3]))
        regrouping = step(lane, 4)
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
        regrouping = step(lane, 8)
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
        return list(step(lane, 4, 64).tickets)

    for _ in range(WINDOW * 4 // 3):
        running = run_without(set(running[:3]))
        assert len(running) == 4
    for left in (3, 2, 1):
        running = run_without({running[0]})
        assert len(running) == left
    assert run_without({running[0]}) == [long]


def lane_of_eight(priority: Priority = INTERACTIVE) -> Lane:
    """Eight run in it."""
    lane = Lane(1)
    tickets = wait(lane, *[8] * 8, priority=priority)
    lane.join(tickets)
    lane.settle([tickets])
    return lane


def turns_waited(lane: Lane, joining: list[Ticket]) -> int:
    patience = Patience(2.0)
    return next(turns for turns in range(1000) if patience.is_worth(lane, joining))


def test_newcomers_wait_until_they_outweigh_those_who_run() -> None:
    empty = Lane(1)
    assert turns_waited(empty, wait(empty, 8)) == 0
    for num_newcomers, expected in ((1, 15), (2, 7), (4, 3), (16, 0)):
        lane = lane_of_eight()
        # Eight who run lose two turns each.
        assert turns_waited(lane, wait(lane, *[8] * num_newcomers)) == expected


def test_a_crowd_of_which_some_are_left_waits_for_more_places() -> None:
    lane = lane_of_eight()
    crowd = wait(lane, *[8] * 100)
    assert turns_waited(lane, crowd[:4]) == int(16 / (4 * CROWD_WEIGHT))


def test_a_caller_does_not_wait_for_a_job() -> None:
    lane = lane_of_eight(BULK)
    wait(lane, 8, priority=BULK)
    assert turns_waited(lane, wait(lane, 8)) == int(2 * 8 * WEIGHTS[BULK])


def grouped(*lengths: int) -> list[list[int]]:
    tickets = [ticket(length) for length in lengths]
    groups = group_by_length(tickets)
    assert sorted(map(id, tickets)) == sorted(id(each) for group in groups for each in group)
    return [[each.length for each in group] for group in groups]


def cost(groups: list[list[int]]) -> int:
    return sum(group[0] * (len(group) + OVERHEAD_SENTENCES) for group in groups)


def test_few_are_padded_and_encoded_at_once() -> None:
    # 20 * 6 = 120 together; 20 * 5 + 5 * 5 = 125 apart.
    assert grouped(5, 20) == [[20, 5]]
    # 40 * 6 = 240 together; 40 * 5 + 4 * 5 = 220 apart.
    assert grouped(4, 40) == [[40], [4]]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_no_other_groups_cost_less(lengths: list[int]) -> None:
    ranked = sorted(lengths, reverse=True)
    places = range(1, len(ranked))
    least = min(
        cost([ranked[a:b] for a, b in pairwise((0, *cuts, len(ranked)))])
        for count in range(len(ranked))
        for cuts in combinations(places, count)
    )
    groups = grouped(*lengths)
    assert cost(groups) == least
    assert [length for group in groups for length in group] == ranked
