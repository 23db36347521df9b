"""What leaves an engine no room is refused, and so is who finds the queue full."""

import pytest

from dragoman_server.engine.errors import QueueFullError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority

INTERACTIVE, BULK = Priority


@pytest.mark.parametrize("name", ["max_rows", "max_source_tokens", "max_queue", "max_beam_size"])
def test_a_limit_that_leaves_no_room_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        EngineLimits(**{name: 0})  # type: ignore[arg-type]


def test_the_widest_beam_must_fit_the_rows() -> None:
    with pytest.raises(ValueError, match="max_beam_size is 16, more rows than max_rows = 10"):
        EngineLimits(max_rows=10)


def test_the_queue_takes_all_or_nothing() -> None:
    limits = EngineLimits(max_queue=3)
    limits.check_queue(coming={INTERACTIVE: 1}, waiting={INTERACTIVE: 2, BULK: 0})
    full = r"2 sentences do not fit in the queue: 2 of 3 are waiting; .* with a larger --max-queue"
    with pytest.raises(QueueFullError, match=full):
        limits.check_queue(coming={INTERACTIVE: 2}, waiting={INTERACTIVE: 2, BULK: 0})


def test_bulk_fills_no_more_than_its_share_of_the_queue() -> None:
    limits = EngineLimits(max_queue=4, max_bulk_share=0.5)
    limits.check_queue(coming={INTERACTIVE: 2}, waiting={INTERACTIVE: 0, BULK: 2})
    # Of its share others take nothing.
    limits.check_queue(coming={BULK: 1}, waiting={INTERACTIVE: 2, BULK: 1})
    full = (
        "1 bulk sentences do not fit in the queue: 2 of 2 are waiting; come again later or with fewer, "
        "or start the server with a larger --max-bulk-share or --max-queue"
    )
    with pytest.raises(QueueFullError, match=full):
        limits.check_queue(coming={INTERACTIVE: 1, BULK: 1}, waiting={INTERACTIVE: 0, BULK: 2})


def test_of_a_queue_full_of_others_bulk_is_told_that_no_larger_share_helps() -> None:
    limits = EngineLimits(max_queue=4, max_bulk_share=0.5)
    full = r"1 sentences do not fit in the queue: 4 of 4 are waiting; .* with a larger --max-queue"
    with pytest.raises(QueueFullError, match=full):
        limits.check_queue(coming={BULK: 1}, waiting={INTERACTIVE: 2, BULK: 2})


def test_no_sentence_fits_in_a_queue_that_holds_too_many() -> None:
    # As where bulk was set back.
    EngineLimits(max_queue=2).check_queue(coming={BULK: 0}, waiting={INTERACTIVE: 0, BULK: 3})
