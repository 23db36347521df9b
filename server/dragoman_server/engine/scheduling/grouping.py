"""Which newcomers are encoded together."""

from collections.abc import Sequence

from dragoman_server.engine.ticket import Ticket

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
