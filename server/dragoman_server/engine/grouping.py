"""Which newcomers are encoded together."""

from collections.abc import Sequence

from dragoman_server.engine.ticket import Ticket

OVERHEAD_SENTENCES = 4
"""A source position of a group costs as much as that of so many sentences, whoever is in the group: a
recurrent encoder takes a step for it, and few rows make no product efficient."""


def group_by_length(tickets: Sequence[Ticket]) -> list[list[Ticket]]:
    """Cuts tickets into the groups that are cheapest to encode, longest first.

    A group costs its longest length times its sentences and OVERHEAD_SENTENCES more: few are padded and
    encoded at once, and many of one length are not held up by one that is much longer.
    """
    ranked = sorted(tickets, key=_length, reverse=True)
    lengths = [_length(ticket) for ticket in ranked]
    # Groups are runs of the ranked: of the last ones, from each place on, the least cost and its first cut.
    costs, cuts = [0] * (len(ranked) + 1), [0] * len(ranked)
    for start in range(len(ranked) - 1, -1, -1):
        costs[start], cuts[start] = min(
            (lengths[start] * (end - start + OVERHEAD_SENTENCES) + costs[end], end)
            for end in range(start + 1, len(ranked) + 1)
        )
    groups, start = [], 0
    while start < len(ranked):
        groups.append(ranked[start : cuts[start]])
        start = cuts[start]
    return groups


def _length(ticket: Ticket) -> int:
    return len(ticket.sentence.source)
