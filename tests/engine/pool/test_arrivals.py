"""Who waits for how long is told of those who wait, however many came and left before."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.engine.pool.pool import Arrivals

BURSTS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(BURSTS)
def test_those_who_came_before_a_moment_are_counted_where_all_leave_in_order(
    bursts: list[tuple[int, int]],
) -> None:
    arrivals, waiting = Arrivals(), list[int]()
    for now, (number, num_leaving) in enumerate(bursts):
        waiting += [now] * number
        arrivals.note(now, number, len(waiting))
        del waiting[:num_leaving]
        for moment in range(now + 2):
            older = sum(came < moment for came in waiting)
            assert arrivals.num_before(moment, len(waiting)) == older
