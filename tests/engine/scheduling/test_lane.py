"""Who joins, who leaves and who stands where, by numbers worked out by hand."""

from itertools import count

from dragoman_server.engine.decoder import padded_positions
from dragoman_server.engine.request import Priority, SearchOptions, Sentence
from dragoman_server.engine.scheduling.budget import Amount, Room
from dragoman_server.engine.scheduling.joining import WINDOW, choose, group_by_length
from dragoman_server.engine.scheduling.lane import Lane, Regrouping
from dragoman_server.engine.ticket import Ticket

ARRIVALS = count()


def ticket(length: int, beam_size: int = 1) -> Ticket:
    options = SearchOptions(beam_size=beam_size, num_hypotheses=1, length_penalty=1.0, max_output_tokens=9)
    sentence = Sentence(source=(3,) * length, options=options, priority=Priority.INTERACTIVE)
    return Ticket(sentence=sentence, accepted_at=0.0, arrival=next(ARRIVALS))


def wait(lane: Lane, *lengths: int) -> list[Ticket]:
    tickets = [ticket(length, lane.beam_size) for length in lengths]
    for each in tickets:
        lane.waiting.add(each)
    return tickets


def admit(lane: Lane, rows: int = 320, positions: int = 16_384) -> list[Ticket]:
    """Lets those join for whom a lane that has so much to itself has room."""
    free = Amount(rows - lane.num_rows, positions - lane.num_positions)
    joining = choose(lane, Priority.INTERACTIVE, [], Room(free=free, bulk=None), max_rows=rows)
    lane.join(joining)
    return joining


def step(lane: Lane, rows: int = 320, positions: int = 16_384) -> Regrouping | None:
    return lane.settle(group_by_length(admit(lane, rows, positions)))


def lengths(regrouping: Regrouping | None) -> list[int]:
    assert regrouping is not None
    return sorted(len(ticket.sentence.source) for ticket in regrouping.tickets)


def test_padding_goes_to_the_next_multiple_of_eight() -> None:
    assert [padded_positions(length) for length in (1, 8, 9, 16, 17)] == [8, 8, 16, 16, 24]


def test_everyone_joins_where_there_is_room() -> None:
    lane = Lane(2)
    tickets = wait(lane, 5, 9, 2)
    regrouping = step(lane, 20)
    assert regrouping is not None
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
        regrouping = step(lane, 8)
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
        regrouping = step(lane, 4, 64)
        assert regrouping is not None
        return list(regrouping.tickets)

    for _ in range(WINDOW * 4 // 3):
        running = run_without(set(running[:3]))
        assert len(running) == 4
    for left in (3, 2, 1):
        running = run_without({running[0]})
        assert len(running) == left
    assert run_without({running[0]}) == [long]
