"""Newcomers are encoded in the groups that cost least, by hand-worked numbers and by trying all."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.engine.request import SearchOptions, Sentence
from dragoman_server.engine.scheduling.joining import OVERHEAD_SENTENCES, group_by_length
from dragoman_server.engine.ticket import Ticket

OPTIONS = SearchOptions(beam_size=1, num_hypotheses=1, length_penalty=1.0, max_output_tokens=5)


def grouped(*lengths: int) -> list[list[int]]:
    tickets = [Ticket(sentence=Sentence(source=(5,) * n, options=OPTIONS), accepted_at=0.0) for n in lengths]
    groups = group_by_length(tickets)
    assert sorted(map(id, tickets)) == sorted(id(ticket) for group in groups for ticket in group)
    return [[len(ticket.sentence.source) for ticket in group] for group in groups]


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
