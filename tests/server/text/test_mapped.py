"""Texts that know where they come from."""

from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_linear

from dragoman_server.text.mapped import Edit, Mapped

Steps = list[tuple[int, int, str]]
"""Gaps between edits, their lengths and what they put in."""
TEXTS = st.text("abc<ä猫 ", max_size=30)


def edits_of(text: str, drawn: Steps) -> list[Edit]:
    """Edits of a text, in order and apart."""
    found: list[Edit] = []
    position = 0
    for gap, length, replacement in drawn:
        start = position + gap
        if start > len(text):
            break
        position = min(start + length, len(text))
        found.append(((start, position), replacement))
    return found


DRAWN = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.text("xyz", max_size=3)), max_size=6)
REPLACING = DRAWN.map(lambda drawn: [(gap, length + 1, text) for gap, length, text in drawn])
"""Without insertions, which are made in texts that nothing was done to."""


@given(TEXTS, DRAWN)
def test_what_is_not_edited_leads_to_itself_there_and_back(text: str, drawn: Steps) -> None:
    edits = edits_of(text, drawn)
    mapped = Mapped.of(text).edited(edits)
    kept = sorted(set(range(len(text))) - {place for (a, b), _ in edits for place in range(a, b)})
    for place in kept:
        start, end = mapped.onto((place, place + 1))
        assert mapped.text[start:end] == text[place]
        assert mapped.back((start, end)) == (place, place + 1)
    for (first, last), replacement in reversed(edits):
        text = text[:first] + replacement + text[last:]
    assert mapped.text == text


@given(TEXTS, DRAWN)
def test_a_replacement_stands_for_all_that_it_replaces(text: str, drawn: Steps) -> None:
    for span, replacement in edits_of(text, drawn):
        mapped = Mapped.of(text).edited([(span, replacement)])
        if replacement:
            place = (span[0], span[0] + len(replacement))
            assert mapped.text[slice(*place)] == replacement
            assert mapped.back(place) == span
        if span[0] < span[1]:
            assert mapped.onto(span) == (span[0], span[0] + len(replacement))


@given(TEXTS, st.tuples(DRAWN, REPLACING, REPLACING))
def test_edits_are_joined_in_any_order(text: str, drawn: tuple[Steps, ...]) -> None:
    made = [Mapped.of(text)]
    for of_step in drawn:
        made.append(Mapped.of(made[-1].text).edited(edits_of(made[-1].text, of_step)))
    _, first, second, third = made
    joined = first.then(second.then(third))
    other = first.then(second).then(third)
    assert (list(joined.starts), list(joined.ends)) == (list(other.starts), list(other.ends))
    assert (joined.text, joined.origin) == (third.text, text)
    # Each edit made in what the one before it made.
    again = Mapped.of(text)
    for of_step in drawn:
        again = again.edited(edits_of(again.text, of_step))
    assert (list(again.starts), list(again.ends)) == (list(joined.starts), list(joined.ends))


@given(TEXTS, DRAWN, st.integers(0, 30), st.integers(0, 30))
def test_a_part_leads_where_the_whole_does(text: str, drawn: Steps, start: int, length: int) -> None:
    mapped = Mapped.of(text).edited(edits_of(text, drawn))
    start = min(start, len(mapped.text))
    part = mapped.part((start, start + length))
    assert part.text == mapped.text[start : start + length]
    for place in range(len(part.text)):
        assert part.back((place, place + 1)) == mapped.back((start + place, start + place + 1))


@given(TEXTS, DRAWN)
def test_positions_go_forth_in_order(text: str, drawn: Steps) -> None:
    mapped = Mapped.of(text).edited(edits_of(text, drawn))
    places = [mapped.forth(position) for position in range(len(text) + 1)]
    assert places == sorted(places)
    assert list(mapped.starts) == sorted(mapped.starts)
    assert list(mapped.ends) == sorted(mapped.ends)


def test_it_takes_time_in_proportion_to_the_edits() -> None:
    def edits(size: int) -> None:
        first = Mapped.of("ab" * size).edited([((2 * place, 2 * place + 1), "xyz") for place in range(size)])
        second = Mapped.of(first.text).edited([((place, place + 1), "") for place in range(0, size, 3)])
        assert first.then(second).onto((0, 2 * size)) == (0, len(second.text))

    assert_linear(edits, 1_000)
