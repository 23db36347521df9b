"""Which sentences join a lane, when that is worth an encoding, and which are encoded together.

An encoding holds up everybody who runs. Newcomers join once they and the turns that they waited outweigh it.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.budget import Room
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.ticket import Ticket

WINDOW = 4
"""Those who join are chosen by their lengths from the WINDOW * (sentences that a lane holds) that came with
the longest waiting one: so many overtake it at most."""
ENCODING_TURNS = 4.0
"""What an encoding costs, in turns that everybody who runs waits for it."""
WEIGHTS = {Priority.INTERACTIVE: 1.0, Priority.BULK: 0.15}
"""How much it counts that a sentence waits for a turn."""
CROWD_WEIGHT = 0.3
"""Times that where more wait than there is room for: some wait in any case, and few rows make quick turns."""


def choose(
    lane: Lane, priority: Priority, joining: Sequence[Ticket], room: Room, *, max_rows: int
) -> list[Ticket]:
    """The tickets of a priority that join beside the ones in `joining`, as far as there is room.

    All where there is a place for each; else callers share the places by turns, and of a caller come those of
    a window whose lengths fit best to those that run. Where all of a caller's window have a place and its
    first does not fit, the others of its priority wait.
    """
    places = room.places(lane)
    window = lane.waiting.window(priority, WINDOW * max(1, max_rows // lane.beam_size))
    if not places or not window.tickets:
        return []
    present = [*lane.running, *joining]
    next_in_turn = window.tickets[:places]
    shares = Counter(ticket.sentence.caller for ticket in next_in_turn)
    heads = {ticket.sentence.caller: ticket for ticket in reversed(next_in_turn)}
    whole = {caller for caller in heads if not present or window.callers[caller] <= shares[caller]}
    first = [head for caller, head in reversed(heads.items()) if caller in whole]
    longest = max((ticket.length for ticket in present), default=0)
    reach = lane.positions_for(max([longest, *(ticket.length for ticket in first)]))
    # Shorter ones cost the others nothing; of the longer ones the least long cost least.
    others = window.by_reach(reach)
    bulk = lane.waiting.first(Priority.BULK)
    if priority is Priority.INTERACTIVE and bulk is not None:
        # It joins next, and all are padded to its length then.
        longest = max(longest, bulk.length)
    chosen: dict[Ticket, None] = {}
    limit = 0
    for ticket in chain(first, others):
        if not shares[ticket.sentence.caller] or ticket in chosen:
            continue
        if not limit or ticket.length > longest:
            longest = max(longest, ticket.length)
            limit = min(places, room.most(lane, joining, longest))
        if len(chosen) >= limit:
            break
        chosen[ticket] = None
        shares[ticket.sentence.caller] -= 1
    return list(chosen)


class Patience:
    """The weight, by lane, of the turns that its newcomers let pass."""

    def __init__(self, encoding_turns: float = ENCODING_TURNS) -> None:
        self._encoding_turns = encoding_turns
        self._waited: dict[Lane, float] = {}

    def is_worth(self, lane: Lane, joining: Sequence[Ticket]) -> bool:
        """Whether they join now; counts the turn that they let pass if not."""
        waited = self._waited.pop(lane, 0.0)
        for priority, weight in WEIGHTS.items():
            number = sum(ticket.sentence.priority is priority for ticket in joining)
            waited += number * weight * (CROWD_WEIGHT if number < lane.waiting.number(priority) else 1.0)
        numbers = lane.num_running - lane.num_bulk, lane.num_bulk
        held_up = sum(number * weight for number, weight in zip(numbers, WEIGHTS.values(), strict=True))
        if waited >= self._encoding_turns * held_up:
            return True
        self._waited[lane] = waited
        return False


OVERHEAD_SENTENCES = 4
"""A source position of a group costs as much as that of so many sentences, whatever the group holds: a
recurrent encoder takes a step for it, and few rows make no product efficient."""


def group_by_length(tickets: Sequence[Ticket]) -> list[list[Ticket]]:
    """Cuts tickets into the groups that are cheapest to encode, longest first.

    A group costs its longest length times its sentences and OVERHEAD_SENTENCES more: few are padded and
    encoded at once, and many of one length are not held up by one that is much longer.
    """
    ranked = sorted(tickets, key=lambda ticket: ticket.length, reverse=True)
    # Groups are runs of the ranked. To cut between two of one length saves nothing, so that the places to cut
    # at are no more than there are lengths, however many come at once.
    places = [at for at in range(len(ranked)) if at == 0 or ranked[at].length < ranked[at - 1].length]
    places.append(len(ranked))
    # Of the last ones, from each of these places on, the least cost and its first cut.
    costs, cuts = [0] * len(places), [0] * len(places)
    for first in range(len(places) - 2, -1, -1):
        start = places[first]
        costs[first], cuts[first] = min(
            (ranked[start].length * (places[next_] - start + OVERHEAD_SENTENCES) + costs[next_], next_)
            for next_ in range(first + 1, len(places))
        )
    groups, first = [], 0
    while places[first] < len(ranked):
        groups.append(ranked[places[first] : places[cuts[first]]])
        first = cuts[first]
    return groups
