"""When newcomers are worth an encoding, by weights added up by hand."""

from itertools import count

from dragoman_server.engine.request import Priority, SearchOptions, Sentence
from dragoman_server.engine.scheduling.joining import CROWD_WEIGHT, WEIGHTS, Patience
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.ticket import Ticket

INTERACTIVE, BULK = Priority.INTERACTIVE, Priority.BULK
ARRIVALS = count()


def wait(lane: Lane, number: int, priority: Priority = INTERACTIVE) -> list[Ticket]:
    options = SearchOptions(beam_size=1, num_hypotheses=1, length_penalty=1.0, max_output_tokens=9)
    sentence = Sentence(source=(3,) * 8, options=options, priority=priority)
    tickets = [Ticket(sentence=sentence, accepted_at=0.0, arrival=next(ARRIVALS)) for _ in range(number)]
    for ticket in tickets:
        lane.waiting.add(ticket)
    return tickets


def run(lane: Lane, number: int, priority: Priority = INTERACTIVE) -> list[Ticket]:
    tickets = wait(lane, number, priority)
    lane.join(tickets)
    lane.settle([tickets])
    return tickets


def turns_waited(patience: Patience, lane: Lane, joining: list[Ticket]) -> int:
    for turns in range(1000):
        if patience.is_worth(lane, joining):
            return turns
    raise AssertionError("they wait for ever")


def test_nobody_waits_for_an_empty_lane() -> None:
    lane = Lane(1)
    assert turns_waited(Patience(2.0), lane, wait(lane, 1)) == 0


def test_newcomers_wait_until_they_outweigh_those_who_run() -> None:
    for num_newcomers, expected in ((1, 15), (2, 7), (4, 3), (16, 0)):
        lane = Lane(1)
        run(lane, 8)
        # Eight who run lose two turns each.
        assert turns_waited(Patience(2.0), lane, wait(lane, num_newcomers)) == expected


def test_a_crowd_of_which_some_are_left_waits_for_more_places() -> None:
    lane = Lane(1)
    run(lane, 8)
    crowd = wait(lane, 100)
    assert turns_waited(Patience(2.0), lane, crowd[:4]) == int(16 / (4 * CROWD_WEIGHT))


def test_a_caller_does_not_wait_for_a_job() -> None:
    lane = Lane(1)
    run(lane, 8, BULK)
    wait(lane, 1, BULK)
    expected = 2 * 8 * WEIGHTS[BULK]
    assert turns_waited(Patience(2.0), lane, wait(lane, 1)) == int(expected)
