"""Who was passed over for too long and goes next.

Two can be passed over: bulk, while interactive sentences are let in, in its own lane or another; and a lane
that nobody runs in, while others take their turns.
"""

from collections.abc import Collection, Sequence

from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.lane import MAX_PASSES, Lane
from dragoman_server.engine.ticket import Ticket


class Fairness:
    """Counts, by lane, how often who waits was passed over."""

    def __init__(self) -> None:
        self._idle_turns: dict[Lane, int] = {}
        self._bulk_passes: dict[Lane, int] = {}
        self._had_bulk_first: set[Lane] = set()

    def count(self, lane: Lane, newcomers: Sequence[Ticket], lanes: Collection[Lane]) -> None:
        """Takes note of a turn of a lane, one of `lanes`, that lets these newcomers in."""
        joined = {ticket.sentence.priority for ticket in newcomers}
        if Priority.INTERACTIVE in joined:
            self._had_bulk_first.discard(lane)
        elif Priority.BULK in joined:
            self._had_bulk_first.add(lane)
        for each in lanes:
            if not each.waiting.queue(Priority.BULK) or (each is lane and Priority.BULK in joined):
                self._bulk_passes[each] = 0
            elif Priority.INTERACTIVE in joined:
                self._bulk_passes[each] = self._bulk_passes.get(each, 0) + 1
        if lane.num_running or not lane.waiting:
            self._idle_turns[lane] = 0
        elif lane.waiting.queue(Priority.INTERACTIVE) or not is_awaited_elsewhere(lane, lanes):
            self._idle_turns[lane] = self._idle_turns.get(lane, 0) + 1

    def is_bulks_turn(self, lane: Lane) -> bool:
        """Whether bulk was passed over for too long, and the interactive ones had their turn since."""
        is_others_turn = lane in self._had_bulk_first and bool(lane.waiting.queue(Priority.INTERACTIVE))
        return self._bulk_passes.get(lane, 0) >= MAX_PASSES and not is_others_turn

    def overdue(self, lanes: Collection[Lane]) -> Lane | None:
        """The lane that goes before the others: it was passed over longest, and for too long."""
        longest = max(lanes, key=self._passes, default=None)
        return longest if longest is not None and self._passes(longest) >= MAX_PASSES else None

    def clear(self) -> None:
        """Forgets all lanes."""
        self._idle_turns.clear()
        self._bulk_passes.clear()
        self._had_bulk_first.clear()

    def _passes(self, lane: Lane) -> int:
        # Sentences may have been cancelled since they were counted.
        idle_turns = self._idle_turns.get(lane, 0) if lane.waiting and not lane.num_running else 0
        bulk_passes = self._bulk_passes.get(lane, 0) if lane.waiting.queue(Priority.BULK) else 0
        return max(idle_turns, bulk_passes)


def is_awaited_elsewhere(lane: Lane, lanes: Collection[Lane]) -> bool:
    """Whether interactive sentences wait in another lane."""
    return any(other.waiting.queue(Priority.INTERACTIVE) for other in lanes if other is not lane)
