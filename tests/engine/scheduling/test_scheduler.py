"""The scheduler by hand, and under whatever hypothesis thinks of."""

import weakref
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.house import ticket

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.joining import WINDOW
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.scheduling.pace import MIN_TURNS
from dragoman_server.engine.scheduling.scheduler import CALM_SECONDS, MANY_ENDED, Scheduler
from dragoman_server.engine.ticket import Ticket


def eager(limits: EngineLimits) -> Scheduler:
    """One with which whoever has room joins at once: to encode costs nothing."""
    return Scheduler(limits, encoding_turns=0.0)


def take_turn(scheduler: Scheduler, now: float = 0.0) -> tuple[int, tuple[Ticket, ...]]:
    """Beam size and newcomers of the next turn."""
    turn = scheduler.next_turn(now)
    assert turn.lane is not None
    turn.lane.settle(turn.groups)
    return turn.lane.beam_size, tuple(t for group in turn.groups for t in group)


def test_lanes_take_turns() -> None:
    scheduler = eager(EngineLimits())
    scheduler.add([ticket(beam_size=5), ticket(beam_size=1), ticket(beam_size=5), ticket(beam_size=3)])
    assert [take_turn(scheduler)[0] for _ in range(7)] == [5, 1, 3, 5, 1, 3, 5]


def test_a_lane_with_nothing_to_do_gets_no_turn() -> None:
    scheduler = eager(EngineLimits())
    one, five = ticket(beam_size=1), ticket(beam_size=5)
    scheduler.add([one, five])
    take_turn(scheduler)
    assert scheduler.remove([one]) == {one}
    assert [take_turn(scheduler)[0] for _ in range(2)] == [5, 5]
    scheduler.remove([five])
    assert scheduler.next_turn(0.0).lane is None


def test_a_removed_sentence_is_gone_whether_it_waits_or_runs_and_only_once() -> None:
    scheduler = eager(EngineLimits())
    running, waiting = ticket(), ticket()
    scheduler.add([running])
    take_turn(scheduler)
    scheduler.add([waiting])
    assert scheduler.remove([running, waiting]) == {running, waiting}
    assert scheduler.remove([running, waiting]) == set()
    assert (scheduler.num_waiting, scheduler.num_running) == (0, 0)


def test_deadlines_expire_when_they_pass_and_not_before() -> None:
    scheduler = eager(EngineLimits(max_rows=1, max_beam_size=1))
    soon, later, never = ticket(deadline=10.0), ticket(deadline=20.0), ticket()
    scheduler.add([later, soon, never])
    assert take_turn(scheduler)[1] == (later,)
    assert scheduler.expire(9.9) == set()
    assert scheduler.expire(10.0) == {soon}
    assert scheduler.expire(30.0) == {later}
    assert (scheduler.num_waiting, scheduler.num_running) == (1, 0)


def test_the_deadlines_of_those_who_ended_are_forgotten() -> None:
    scheduler = eager(EngineLimits())
    answered = []
    for _ in range(3000):
        done = ticket(deadline=1e9)
        scheduler.add([done])
        scheduler.remove([done])
        scheduler.expire(0.0)
        answered.append(weakref.ref(done))
        del done
    assert len(scheduler._deadlines) <= MANY_ENDED + 1
    # What they were answered with may be large, and nobody but their callers keeps it.
    assert [ref() for ref in answered if ref() is not None] == []


def test_those_who_did_not_end_keep_their_deadlines_when_others_are_forgotten() -> None:
    scheduler = eager(EngineLimits())
    waiting = [ticket(deadline=2.0 + number % 7) for number in range(1500)]
    scheduler.add(waiting)
    ended = [ticket(deadline=1.0) for _ in range(5000)]
    scheduler.add(ended)
    scheduler.remove(ended)
    assert scheduler.expire(0.0) == set()
    assert len(scheduler._deadlines) == 1500
    assert scheduler.expire(5.0) == {each for number, each in enumerate(waiting) if number % 7 <= 3}


def test_rows_are_shared_by_all_lanes() -> None:
    scheduler = eager(EngineLimits(max_rows=12, max_beam_size=5))
    scheduler.add([ticket(beam_size=5) for _ in range(2)])
    assert len(take_turn(scheduler)[1]) == 2
    scheduler.add([ticket() for _ in range(4)])
    # Two rows are free. The lane of beam 5 wants nothing more, and keeps what it has.
    assert take_turn(scheduler) == (5, ())
    assert len(take_turn(scheduler)[1]) == 2


def test_sentences_of_all_lanes_join_nearly_in_the_order_of_arrival() -> None:
    scheduler = eager(EngineLimits(max_rows=12, max_beam_size=2))
    running = [ticket(beam_size=2) for _ in range(6)]
    scheduler.add(running)
    take_turn(scheduler)
    waiting = [ticket(beam_size=1 + number % 2) for number in range(20)]
    scheduler.add(waiting)
    joined: list[Ticket] = []
    while len(joined) < 18:
        _, newcomers = take_turn(scheduler)
        joined += newcomers
        running += newcomers
        # One after the other ends; what it leaves is kept for whoever came first, in whichever lane.
        if not newcomers:
            scheduler.remove([running.pop(0)])
    overtaken = [abs(joined.index(each) - waiting.index(each)) for each in joined]
    assert max(overtaken) <= 3
    assert sum(overtaken) <= len(joined)


def test_a_sentence_that_needs_the_whole_budget_gets_it() -> None:
    scheduler = eager(EngineLimits(max_rows=16, max_source_tokens=128, max_beam_size=2))
    scheduler.add([ticket(8) for _ in range(20)])
    running = list(take_turn(scheduler)[1])
    whole = ticket(128, beam_size=2)
    scheduler.add([whole])
    for _ in range(4 * WINDOW):
        scheduler.add([ticket(8) for _ in range(8)])
        beam_size, newcomers = take_turn(scheduler)
        if beam_size == 2:
            assert newcomers == (whole,)
            break
        # The last of those who run goes on until nobody joins it any more.
        running += newcomers
        num_leaving = max(len(running) - 1, 1)
        scheduler.remove(running[:num_leaving])
        running = running[num_leaving:]
    else:
        pytest.fail("it starved")


def test_bulk_rows_are_counted_over_all_lanes() -> None:
    scheduler = eager(EngineLimits(max_rows=16, max_beam_size=2, max_bulk_share=0.5))
    scheduler.add([ticket(priority=Priority.BULK) for _ in range(6)])
    assert len(take_turn(scheduler)[1]) == 6
    scheduler.add([ticket(beam_size=2, priority=Priority.BULK) for _ in range(6)])
    # Eight rows are bulk's, and six are taken: one sentence of two rows.
    assert take_turn(scheduler) == (1, ())
    assert len(take_turn(scheduler)[1]) == 1


def test_bulk_adds_no_more_to_a_step_than_it_may() -> None:
    scheduler = eager(EngineLimits(max_rows=40, max_bulk_share=1.0, max_bulk_slowdown=3.0))
    for num_rows in (4, 8):
        scheduler.add([ticket(priority=Priority.BULK) for _ in range(4)])
        assert len(take_turn(scheduler)[1]) == 4
        # A turn takes 4 ms, and a row 1 on top of it.
        for _ in range(MIN_TURNS):
            scheduler.on_turn(scheduler.lanes[0], 0.004 + 0.001 * num_rows)
    scheduler.add([ticket(priority=Priority.BULK) for _ in range(40)])
    scheduler.add([ticket() for _ in range(8)])
    # A lone sentence's takes 5 ms and three times as long with ten rows more, of which bulk has eight.
    joined = [t.sentence.priority for t in take_turn(scheduler)[1]]
    assert joined == [Priority.INTERACTIVE] * 8 + [Priority.BULK] * 2


def scheduler_with_callers() -> Scheduler:
    """Two run, of one row each. A turn takes 9 ms, and a row 1 on top of it."""
    scheduler = eager(EngineLimits(max_bulk_slowdown=3.0))
    for total in (1, 2):
        scheduler.add([ticket()])
        take_turn(scheduler)
        for _ in range(MIN_TURNS):
            scheduler.on_turn(scheduler.lanes[0], 0.009 + 0.001 * total)
    return scheduler


@pytest.mark.parametrize(("jobs_beam", "num_rows"), [(1, 20), (2, 10)])
def test_bulk_that_takes_turns_of_its_own_has_fewer_rows(jobs_beam: int, num_rows: int) -> None:
    scheduler = scheduler_with_callers()
    # A lone caller's takes 10 ms, and three times as long with 20 rows more, or another turn of 11 rows.
    scheduler.add([ticket(beam_size=jobs_beam, priority=Priority.BULK) for _ in range(40)])
    for _ in range(4):
        take_turn(scheduler)
    assert sum(lane.num_bulk_rows for lane in scheduler.lanes) == num_rows


def test_bulk_in_other_lanes_takes_turns_that_count_too() -> None:
    scheduler = scheduler_with_callers()
    scheduler.add([ticket(beam_size=3, priority=Priority.BULK)])
    for _ in range(4):
        take_turn(scheduler)
    # Two more turns take 18 of the 20 ms that bulk may.
    scheduler.add([ticket(beam_size=2, priority=Priority.BULK) for _ in range(40)])
    for _ in range(6):
        take_turn(scheduler)
    assert sum(lane.num_bulk_rows for lane in scheduler.lanes) == 3


def calm_scheduler(*, slowdown: float, num_bulk: int, beam_size: int = 1) -> tuple[Scheduler, list[Ticket]]:
    """Bulk runs alone, that joined one by one.

    Turns have cost nothing but their rows so far: who comes leaves it `slowdown` - 1 times its own.
    """
    scheduler = eager(EngineLimits(max_rows=40, max_bulk_slowdown=slowdown))
    running = [ticket(beam_size=beam_size, priority=Priority.BULK) for _ in range(num_bulk)]
    scheduler.add(running)
    assert len(take_turn(scheduler)[1]) == num_bulk
    for number, each in enumerate(running):
        each.encoding_at = float(number)
    scheduler.on_turn(scheduler.lanes[0], num_bulk * beam_size / 1000)
    return scheduler, running


def test_bulk_has_all_of_its_share_where_nobody_else_comes() -> None:
    scheduler, _ = calm_scheduler(slowdown=5.0, num_bulk=7)
    scheduler.add([ticket(priority=Priority.BULK) for _ in range(40)])
    assert len(take_turn(scheduler)[1]) == 30 - 7


def test_bulk_gives_way_where_somebody_comes_and_begins_anew_before_the_others() -> None:
    scheduler, running = calm_scheduler(slowdown=5.0, num_bulk=8)
    running[0].encoding_at = 8.0
    caller, later = ticket(), [ticket(priority=Priority.BULK) for _ in range(3)]
    scheduler.add([caller, *later])
    assert take_turn(scheduler, now=100.0) == (1, (caller,))
    [lane] = scheduler.lanes
    assert set(lane.running) == {caller, *running[1:5]}
    assert list(lane.waiting) == [*running[5:], running[0], *later]
    # Not calm at once: calls follow each other.
    scheduler.remove([caller])
    assert take_turn(scheduler, now=100.0 + CALM_SECONDS - 0.1) == (1, ())
    assert take_turn(scheduler, now=100.0 + CALM_SECONDS) == (1, (*running[5:], running[0], *later))


def test_bulk_gives_way_once_and_not_at_every_turn_that_takes_longer() -> None:
    scheduler, running = calm_scheduler(slowdown=5.0, num_bulk=8)
    scheduler.add([ticket()])
    take_turn(scheduler, now=100.0)
    [lane] = scheduler.lanes
    for _ in range(50):
        scheduler.on_turn(lane, 1.0)
    take_turn(scheduler, now=101.0)
    assert set(running[:4]) < set(lane.running)


def test_one_of_bulk_goes_on_however_slow_a_step_is() -> None:
    scheduler, running = calm_scheduler(slowdown=1.0, num_bulk=4, beam_size=5)
    scheduler.add([ticket(beam_size=5)])
    take_turn(scheduler)
    assert scheduler.lanes[0].running[0] is running[0]
    assert (scheduler.num_running, scheduler.num_waiting_of(Priority.BULK)) == (2, 3)


def test_bulk_of_every_lane_gives_way_to_whoever_comes() -> None:
    scheduler, running = calm_scheduler(slowdown=3.0, num_bulk=6)
    others = [ticket(beam_size=2, priority=Priority.BULK) for _ in range(6)]
    scheduler.add(others)
    take_turn(scheduler)
    assert take_turn(scheduler) == (2, tuple(others))
    for number, each in enumerate(others):
        each.encoding_at = number + 0.5
    scheduler.add([ticket(beam_size=3)])
    take_turn(scheduler)
    # The first to join have 1, 2, 1 and 2 rows.
    assert [t for lane in scheduler.lanes for t in lane.running] == [*others[:2], *running[:2]]


def experienced(
    length: int, *, steps: int, seconds: list[tuple[float, float]]
) -> tuple[Scheduler, Lane, Ticket]:
    """A sentence runs that took so many steps, and so long each time to be encoded and to take a step."""
    scheduler, known = eager(EngineLimits()), ticket(length)
    scheduler.add([known])
    lane = scheduler.next_turn(0.0).lane
    assert lane is not None
    lane.settle([[known]])
    for encode_seconds, step_seconds in seconds:
        scheduler.on_encode(encode_seconds)
        scheduler.on_turn(lane, step_seconds)
    scheduler.on_finish(known, steps=steps)
    return scheduler, lane, known


def test_work_that_cannot_be_answered_in_time_is_dropped_before_it_is_encoded() -> None:
    scheduler, _, _ = experienced(10, steps=15, seconds=[(0.02, 0.01)])
    # A sentence of 6 tokens is expected to take 9 turns of 10 ms and 20 ms of encoding: half of it is 55 ms.
    hopeless, hopeful = ticket(6, deadline=1.054), ticket(6, deadline=1.056)
    scheduler.add([hopeless, hopeful])
    turn = scheduler.next_turn(1.0)
    assert turn.late == [hopeless]
    assert turn.groups == [[hopeful]]
    assert scheduler.num_waiting == 0


def test_an_idle_engine_tries_however_slow_it_was() -> None:
    scheduler, lane, slow = experienced(25, steps=25, seconds=[(3.0, 0.1)])
    scheduler.remove([slow])
    for now in (10.0, 20.0):
        due = ticket(25, deadline=now + 1)
        scheduler.add([due])
        turn = scheduler.next_turn(now)
        assert (turn.late, turn.groups) == ([], [[due]])
        lane.settle(turn.groups)
        # While that one runs, another one has the same prospects, and is given up.
        hopeless = ticket(25, deadline=now + 1)
        scheduler.add([hopeless])
        assert scheduler.next_turn(now).late == [hopeless]
        scheduler.remove([due])


def test_a_lane_that_stood_still_is_not_judged_by_what_its_turns_took_then() -> None:
    scheduler = eager(EngineLimits())
    many = [ticket(10, beam_size=2) for _ in range(20)]
    scheduler.add(many)
    assert take_turn(scheduler) == (2, tuple(many))
    [slow] = scheduler.lanes
    scheduler.on_turn(slow, 1.0)
    scheduler.on_finish(many[0], steps=10)
    scheduler.remove(many)
    other = ticket(10)
    scheduler.add([other])
    assert take_turn(scheduler) == (1, (other,))
    scheduler.on_turn(scheduler.lanes[-1], 0.002)
    # Nine turns, of 2 ms for the lane that runs and of twice that for the one that stood still; half of it.
    hopeless, hopeful = ticket(10, beam_size=2, deadline=5.026), ticket(10, beam_size=2, deadline=5.028)
    scheduler.add([hopeless])
    assert [late for _ in range(2) for late in scheduler.next_turn(5.0).late] == [hopeless]
    scheduler.add([hopeful])
    turns = [scheduler.next_turn(5.0) for _ in range(2)]
    assert [group for turn in turns for group in turn.groups] == [[hopeful]]
    assert not any(turn.late for turn in turns)


def test_one_slow_encoding_and_step_are_forgotten_with_the_next() -> None:
    scheduler, _, _ = experienced(25, steps=25, seconds=[(3.0, 0.5), (0.02, 0.01)])
    due = ticket(25, deadline=1.0)
    scheduler.add([due])
    turn = scheduler.next_turn(0.0)
    assert (turn.late, turn.groups) == ([], [[due]])


def test_nobody_is_dropped_for_a_time_that_nobody_knows() -> None:
    scheduler = eager(EngineLimits())
    scheduler.add([ticket(100, deadline=1e-6)])
    assert scheduler.next_turn(0.0).late == []


@dataclass(frozen=True)
class Arrival:
    """A sentence of a random workload; times are counted in turns."""

    at: int
    length: int
    beam_size: int
    num_steps: int
    deadline: int | None
    cancelled_at: int | None
    priority: Priority


arrivals = st.builds(
    Arrival,
    at=st.integers(0, 40),
    length=st.integers(1, 64),
    beam_size=st.sampled_from([1, 2, 5]),
    num_steps=st.integers(1, 12),
    deadline=st.none() | st.integers(1, 60),
    cancelled_at=st.none() | st.integers(1, 60),
    priority=st.sampled_from(Priority),
)


@given(
    workload=st.lists(arrivals, max_size=60),
    limits=st.builds(
        EngineLimits,
        max_rows=st.integers(5, 24),
        max_source_tokens=st.integers(64, 256),
        max_bulk_share=st.floats(0.1, 1),
        max_beam_size=st.just(5),
        continuous=st.booleans(),
    ),
    row_seconds=st.none() | st.floats(1e-4, 0.5),
)
def test_every_sentence_ends_once_within_the_budget(
    workload: list[Arrival], limits: EngineLimits, row_seconds: float | None
) -> None:
    scheduler, continuous = Scheduler(limits), limits.continuous
    plans = {
        ticket(a.length, a.beam_size, None if a.deadline is None else float(a.deadline), a.priority): a
        for a in workload
    }
    remaining = {t: a.num_steps for t, a in plans.items()}
    endings: dict[Ticket, str] = {}

    def end(tickets: set[Ticket], how: str) -> None:
        for t in tickets:
            assert t not in endings
            endings[t] = how

    is_known = False
    total_steps = sum(a.num_steps for a in workload)
    for now in range(41 + 60 + 20 * (total_steps + len(workload) + 1)):
        scheduler.add([t for t, a in plans.items() if a.at == now])
        end(scheduler.remove([t for t, a in plans.items() if a.cancelled_at == now]), "cancelled")
        end(scheduler.expire(float(now)), "expired")
        held_by = {lane: set(lane.running) for lane in scheduler.lanes}
        callers = [lane.beam_size for lane in scheduler.lanes if lane.is_urgent]
        turn = scheduler.next_turn(float(now))
        for t in set().union(*held_by.values()) - {t for each in scheduler.lanes for t in each.running}:
            # It was set back, and gives way to nobody but those who are there.
            assert t.sentence.priority is Priority.BULK
            assert continuous
            assert any(each.is_urgent for each in scheduler.lanes)
            remaining[t] = plans[t].num_steps
        # As long as no time was observed, nobody is late before the deadline itself.
        assert not turn.late or row_seconds is not None
        assert all(plans[t].deadline is not None for t in turn.late)
        end(set(turn.late), "late")
        lane = turn.lane
        if lane is None:
            # Nobody waits while the budget lies idle.
            assert scheduler.num_waiting == 0
            if now > 60:
                break
            continue
        before = held_by[lane]
        regrouping = lane.settle(turn.groups)
        running = lane.running
        everyone = [(t, each.beam_size) for each in scheduler.lanes for t in each.running]
        assert sum(beam for _, beam in everyone) <= limits.max_rows
        bulk = [beam for t, beam in everyone if t.sentence.priority is Priority.BULK]
        assert sum(bulk) <= max(limits.max_bulk_rows, bulk[0] if len(bulk) == 1 else 0)
        assert sum(each.num_positions for each in scheduler.lanes) <= limits.max_source_tokens
        newcomers = [t.sentence.priority for group in turn.groups for t in group]
        if set(newcomers) == {Priority.BULK} and len(bulk) > 1:
            num_bulk_positions = sum(each.num_bulk_positions for each in scheduler.lanes)
            assert num_bulk_positions <= limits.max_bulk_source_tokens
        if Priority.BULK in newcomers and callers and is_known and len(bulk) > 1:
            # Turns cost nothing but their rows.
            assert sum(bulk) <= (limits.max_bulk_slowdown - 1) * min(callers)
        longest = max(len(t.sentence.source) for t in running)
        if regrouping is not None:
            assert list(regrouping.tickets) == running
            assert len(running) * regrouping.source_positions == lane.num_positions
            assert longest <= regrouping.source_positions
        # A turn is never wasted, and nobody joins a batch that must end first.
        assert running
        assert continuous or not before or before == set(running)
        for t in running:
            assert t not in endings
            assert not (plans[t].deadline is not None and plans[t].deadline <= now)
            remaining[t] -= 1
        done = {t for t in running if remaining[t] == 0}
        if row_seconds is not None:
            scheduler.on_encode(row_seconds)
            scheduler.on_turn(lane, row_seconds * lane.num_rows)
            is_known = True
            for t in done:
                scheduler.on_finish(t, plans[t].num_steps)
        assert scheduler.remove(done) == done
        end(done, "finished")
    # Nobody starves: within turns in proportion to the work everyone has ended.
    assert endings.keys() == plans.keys()
    for t, how in endings.items():
        assert (how == "finished") == (remaining[t] == 0)
