"""Who gets what where everybody waits at all times: shares and waits, over hundreds of turns."""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.house import sentence

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.engine.ticket import Ticket

INTERACTIVE, BULK = Priority.INTERACTIVE, Priority.BULK


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """Sentences of a kind, of which so many wait before every turn."""

    priority: Priority
    depth: int
    beam_size: int = 1
    caller: str = ""
    lengths: tuple[int, ...] = (24,)
    """Their lengths in turn."""
    num_steps: tuple[int, ...] = (10, 13, 8, 12, 9, 11, 14)
    """How long they run, in turn."""

    def ticket(self, number: int) -> Ticket:
        source = [3] * self.lengths[number % len(self.lengths)]
        own = sentence(*source, steps=99, beam_size=self.beam_size, priority=self.priority)
        return Ticket(sentence=replace(own, caller=self.caller), accepted_at=0.0)


class Rush:
    """A scheduler that all the crowds besiege, and what each of them got."""

    def __init__(self, limits: EngineLimits, *crowds: Crowd) -> None:
        self._limits = limits
        self._scheduler = Scheduler(limits)
        self._waiting: dict[Crowd, set[Ticket]] = {crowd: set() for crowd in crowds}
        self._crowd_of: dict[Ticket, Crowd] = {}
        self._remaining: dict[Ticket, int] = {}
        self._num_added: Counter[Crowd] = Counter()
        self._waits: Counter[Crowd] = Counter()
        self.joined: Counter[Crowd] = Counter()
        """How many were let in."""
        self.rows: Counter[Crowd] = Counter()
        """Rows that they had, summed over the turns."""
        self.longest_wait: Counter[Crowd] = Counter()
        """Most turns in a row without anyone of the crowd let in."""

    def besiege(self, *crowds: Crowd) -> None:
        """Adds crowds."""
        self._waiting |= {crowd: set() for crowd in crowds}

    def run(self, num_turns: int) -> None:
        """Takes turns; asserts at each that budgets hold."""
        for _ in range(num_turns):
            self._fill_up()
            self._take_turn()

    def _fill_up(self) -> None:
        for crowd, waiting in self._waiting.items():
            for _ in range(crowd.depth - len(waiting)):
                number = self._num_added[crowd]
                ticket = crowd.ticket(number)
                self._num_added[crowd] += 1
                self._remaining[ticket] = crowd.num_steps[number % len(crowd.num_steps)]
                self._scheduler.add([ticket])
                self._crowd_of[ticket] = crowd
                waiting.add(ticket)

    def _take_turn(self) -> None:
        turn = self._scheduler.next_turn(0.0)
        lane = turn.lane
        assert lane is not None
        newcomers = {ticket for group in turn.groups for ticket in group}
        lane.settle(turn.groups)
        joined = {crowd: len(waiting & newcomers) for crowd, waiting in self._waiting.items()}
        for waiting in self._waiting.values():
            waiting -= newcomers
        self._check_budgets(joined)
        self._count(joined)
        done = []
        for ticket in lane.running:
            self._remaining[ticket] -= 1
            if not self._remaining[ticket]:
                done.append(ticket)
                del self._remaining[ticket], self._crowd_of[ticket]
        self._scheduler.remove(done)

    def _check_budgets(self, joined: dict[Crowd, int]) -> None:
        lanes, limits = self._scheduler.lanes, self._limits
        assert sum(lane.num_rows for lane in lanes) <= limits.max_rows
        assert sum(lane.num_positions for lane in lanes) <= limits.max_source_tokens
        num_bulk = sum(lane.num_bulk for lane in lanes)
        assert sum(lane.num_bulk_rows for lane in lanes) <= limits.max_bulk_rows or num_bulk == 1
        # Longer interactive sentences pad those of bulk that run already, but no more of bulk joins them.
        if {crowd.priority for crowd in joined if joined[crowd]} == {BULK} and num_bulk > 1:
            assert sum(lane.num_bulk_positions for lane in lanes) <= limits.max_bulk_source_tokens

    def _count(self, joined: dict[Crowd, int]) -> None:
        self.joined.update(joined)
        for lane in self._scheduler.lanes:
            for ticket in lane.running:
                self.rows[self._crowd_of[ticket]] += lane.beam_size
        for crowd in joined:
            self._waits[crowd] = 0 if joined[crowd] else self._waits[crowd] + 1
            self.longest_wait[crowd] = max(self.longest_wait[crowd], self._waits[crowd])


def crowds(*, interactive_beam: int = 1, bulk_beam: int = 1) -> tuple[Crowd, Crowd]:
    return (
        Crowd(priority=INTERACTIVE, depth=100, beam_size=interactive_beam),
        Crowd(priority=BULK, depth=100, beam_size=bulk_beam),
    )


def test_interactive_sentences_have_nearly_all_rows_where_both_crowd() -> None:
    interactive, bulk = crowds()
    rush = Rush(EngineLimits(max_rows=64), interactive, bulk)
    rush.run(500)
    assert rush.rows[interactive] > 6 * rush.rows[bulk]


def test_interactive_sentences_go_first_across_lanes() -> None:
    interactive, bulk = crowds(interactive_beam=5, bulk_beam=4)
    rush = Rush(EngineLimits(max_rows=80), interactive, bulk)
    rush.run(500)
    # As long as nothing is known of turns, bulk may have twice the rows of a lone caller.
    assert 0 < rush.rows[bulk] <= 500 * 2 * 5
    # A crowd waits for more places, so that some are free.
    assert rush.rows[interactive] > 0.5 * 500 * (80 - 2 * 5)


def test_lanes_of_bulk_share_alike() -> None:
    # A place is enough for the narrow ones, which take every one at once.
    narrow = Crowd(priority=BULK, depth=2, num_steps=(40,))
    wide = Crowd(priority=BULK, depth=20, beam_size=5)
    rush = Rush(EngineLimits(max_rows=64), narrow, wide)
    rush.run(500)
    assert rush.rows[wide] > rush.rows[narrow] / 2


def test_bulk_that_needs_all_of_the_share_of_bulk_gets_it() -> None:
    narrow = Crowd(priority=BULK, depth=20)
    wide = Crowd(priority=BULK, depth=1, beam_size=4)
    interactive = Crowd(priority=INTERACTIVE, depth=1)
    rush = Rush(EngineLimits(max_rows=8, max_beam_size=4, max_bulk_share=0.5), narrow, wide)
    rush.run(300)
    # Its next one comes behind 20 narrow ones, four of which run at a time.
    assert rush.longest_wait[wide] < 120
    rush.besiege(interactive)
    rush.run(300)
    assert rush.longest_wait[wide] < 240


def test_long_bulk_leaves_its_share_of_positions_free() -> None:
    limits = EngineLimits()
    bulk = Crowd(priority=BULK, depth=100, lengths=(512,), num_steps=(99,))
    rush = Rush(limits, bulk)
    rush.run(10)
    assert rush.joined[bulk] == 24


def test_bulk_of_another_lane_reserves_no_rows_that_interactive_sentences_want() -> None:
    bulk = Crowd(priority=BULK, depth=100, beam_size=5, num_steps=(99,))
    rush = Rush(EngineLimits(), bulk)
    rush.run(2)
    assert rush.joined[bulk] == 48
    other = Crowd(priority=BULK, depth=100, beam_size=4)
    interactive = Crowd(priority=INTERACTIVE, depth=16, beam_size=5)
    rush.besiege(other, interactive)
    rush.run(2)
    assert rush.joined[interactive] == 16


kinds = st.builds(
    Crowd,
    priority=st.sampled_from(Priority),
    depth=st.integers(1, 16),
    beam_size=st.sampled_from([1, 2, 5]),
    lengths=st.lists(st.integers(1, 64), min_size=1, max_size=5).map(tuple),
    num_steps=st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
)


def test_interactive_ones_that_bulk_of_their_lane_pads_are_let_in() -> None:
    """Beside bulk there is room for such a sentence, and none for one as long as the bulk that joins next."""
    short = Crowd(priority=INTERACTIVE, depth=4, beam_size=2, lengths=(14,))
    long = Crowd(priority=BULK, depth=9, beam_size=2, lengths=(62, 28))
    other = Crowd(priority=BULK, depth=9, beam_size=1, lengths=(57, 9))
    sizes = {"max_rows": 12, "max_source_tokens": 120, "max_beam_size": 5}
    rush = Rush(EngineLimits(**sizes, max_bulk_share=0.84, continuous=False), other, long, short)
    rush.run(600)
    assert max(rush.longest_wait.values()) < 300


@given(
    kinds=st.lists(kinds, min_size=1, max_size=6, unique_by=lambda crowd: (crowd.priority, crowd.beam_size)),
    max_rows=st.integers(5, 24),
    max_source_tokens=st.integers(64, 256),
    max_bulk_share=st.floats(0.05, 1),
    continuous=st.booleans(),
)
def test_nobody_starves_where_everybody_waits_at_all_times(
    kinds: list[Crowd], max_rows: int, max_source_tokens: int, max_bulk_share: float, continuous: bool
) -> None:
    limits = EngineLimits(
        max_rows=max_rows,
        max_source_tokens=max_source_tokens,
        max_bulk_share=max_bulk_share,
        max_beam_size=5,
        continuous=continuous,
    )
    rush = Rush(limits, *kinds)
    # If everybody who waits ran alone, one after the other, while each lane has its turns.
    bound = 6 * sum((kind.depth + 1) * max(kind.num_steps) for kind in kinds)
    rush.run(bound + 100)
    assert max(rush.longest_wait.values()) < bound


def one(caller: str, *, beam_size: int = 1, priority: Priority = INTERACTIVE, length: int = 24) -> Ticket:
    crowd = Crowd(priority=priority, depth=1, beam_size=beam_size, lengths=(length,), caller=caller)
    return crowd.ticket(0)


def join_in_order(scheduler: Scheduler, num_turns: int, num_steps: Counter[Ticket]) -> list[list[Ticket]]:
    """Who joined at each turn, where sentences run for some eight steps."""
    joined: list[list[Ticket]] = []
    for _ in range(num_turns):
        turn = scheduler.next_turn(0.0)
        assert turn.lane is not None
        joined.append([ticket for group in turn.groups for ticket in group])
        turn.lane.settle(turn.groups)
        num_steps.update(turn.lane.running)
        scheduler.remove([t for t in turn.lane.running if num_steps[t] >= 5 + t.length % 7])
    return [group for group in joined if group]


@given(
    callers=st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=60),
    later=st.lists(st.sampled_from("ABCDEFG"), max_size=30),
    max_rows=st.integers(1, 9),
    priority=st.sampled_from(Priority),
)
@settings(deadline=None)
def test_before_a_sentence_comes_at_most_one_of_each_other_caller(
    callers: list[str], later: list[str], max_rows: int, priority: Priority
) -> None:
    scheduler = Scheduler(EngineLimits(max_rows=max_rows, max_source_tokens=9_999, max_beam_size=1))
    waiting: list[Ticket] = []
    overtaken: dict[str, Counter[str]] = {}
    while True:
        coming, callers = callers, later[:3]
        later = later[3:]
        tickets = [one(caller, priority=priority) for caller in coming]
        for caller in {*coming} - {ticket.sentence.caller for ticket in waiting}:
            overtaken[caller] = Counter()
        scheduler.add(tickets)
        waiting += tickets
        turn = scheduler.next_turn(0.0)
        if turn.lane is None and not later and not callers:
            break
        if turn.lane is None:
            continue
        joined = [ticket for group in turn.groups for ticket in group]
        served = Counter(ticket.sentence.caller for ticket in joined)
        waiting = [ticket for ticket in waiting if ticket not in joined]
        for caller, others in overtaken.items():
            others.update(served)
            if served[caller]:
                others.clear()
            if any(ticket.sentence.caller == caller for ticket in waiting):
                assert all(number <= 1 for number in others.values())
        turn.lane.settle(turn.groups)
        scheduler.remove(turn.lane.running[:2])
    assert not waiting


def test_a_caller_with_one_sentence_comes_next_beside_a_thousand_of_another() -> None:
    for beam_size in (1, 4):
        limits = EngineLimits(max_rows=32, max_source_tokens=9_999, max_beam_size=4)
        scheduler = Scheduler(limits)
        many = [one("many", beam_size=4, length=8 + number % 30) for number in range(1_000)]
        scheduler.add(many)
        num_steps: Counter[Ticket] = Counter()
        join_in_order(scheduler, 20, num_steps)
        lone = one("lone", beam_size=beam_size, length=50)
        scheduler.add([lone])
        joined = join_in_order(scheduler, 60, num_steps)
        (rank,) = (rank for rank, group in enumerate(joined) if lone in group)
        assert rank <= 1
        assert len(joined) > 3


def test_callers_share_alike_however_many_wait() -> None:
    crowds = [Crowd(priority=INTERACTIVE, depth=depth, caller=f"{depth}") for depth in (400, 100, 40)]
    rush = Rush(EngineLimits(max_rows=60, max_source_tokens=9_999, max_beam_size=1), *crowds)
    rush.run(600)
    rows = sum(rush.rows.values())
    assert all(abs(rush.rows[crowd] / rows - 1 / 3) < 0.02 for crowd in crowds)


def longest_wait_beside(num_calls: int) -> float:
    """Of sixty sentences, one at a time, beside so many calls of sixty of another, in virtual seconds."""
    scheduler, now, random = Scheduler(EngineLimits()), 0.0, Random(1)
    coming = [(random.random() * 0.1, call) for call in range(num_calls + 1)]
    of_call: dict[Ticket, int] = {}
    remaining: Counter[Ticket] = Counter()
    began: dict[int, float] = {}
    num_open: Counter[int] = Counter()
    waited: list[float] = []
    while len(waited) < 60:
        for at, call in [entry for entry in coming if entry[0] <= now]:
            coming.remove((at, call))
            lengths = [max(4, round(random.gauss(11, 4))) for _ in range(60 if call else 1)]
            tickets = [one("many" if call else "lone", beam_size=5, length=length) for length in lengths]
            of_call |= dict.fromkeys(tickets, call)
            remaining.update({ticket: ticket.length for ticket in tickets})
            began[call], num_open[call] = now, len(tickets)
            scheduler.add(tickets)
        turn = scheduler.next_turn(now)
        if turn.lane is None:
            now = min(coming)[0]
            continue
        turn.lane.settle(turn.groups)
        seconds = 0.004 * (1 + len(turn.groups)) + 0.00012 * turn.lane.num_rows
        now += seconds
        scheduler.on_turn(turn.lane, seconds)
        remaining.subtract(turn.lane.running)
        done = [ticket for ticket in turn.lane.running if remaining[ticket] <= 0]
        scheduler.remove(done)
        for ticket in done:
            call = of_call[ticket]
            num_open[call] -= 1
            if not num_open[call]:
                coming.append((now + (0.08 if call else 0.01), call))
                waited += [] if call else [now - began[call]]
    return max(waited)


def test_a_sentence_alone_hardly_notices_how_many_calls_another_has() -> None:
    assert longest_wait_beside(40) < 1.5 * longest_wait_beside(2)
