"""How long the next engine waits for its start, in virtual time."""

from dragoman_server.engine.pool.process import MAX_SECONDS, RESET_SECONDS, Backoff


def test_the_first_is_replaced_at_once_and_each_one_after_it_waits_twice_as_long() -> None:
    backoff = Backoff()
    backoff.started(10.0)
    assert [backoff.delay(11.0) for _ in range(8)] == [0, 1, 2, 4, 8, 16, MAX_SECONDS, MAX_SECONDS]


def test_one_that_lived_for_long_begins_anew() -> None:
    backoff = Backoff()
    for now in (10.0, 20.0, 30.0):
        backoff.started(now)
        last = backoff.delay(now + 1)
    assert last == 2
    backoff.started(40.0)
    assert backoff.delay(40.0 + RESET_SECONDS) == 0
