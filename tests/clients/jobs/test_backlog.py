"""Lines are handed to one stream at a time, in whichever order threads wake."""

import threading

import pytest

from dragoman.jobs.streams.backlog import Backlog
from dragoman_files.lines import TextLines, parse_line


def backlog(num_lines: int) -> Backlog:
    return Backlog(line(number) for number in range(1, num_lines + 1))


def line(number):
    return parse_line(b"%d\n" % number, TextLines(), number=number, position=number)


def test_a_stream_has_what_is_not_done_and_what_is_not_read():
    lines = backlog(5)
    first = lines.stream()
    read = [next(first) for _ in range(3)]
    lines.done(read[0])
    assert [line.number for line in lines.stream()] == [2, 3, 4, 5]


def test_a_stream_that_wakes_late_does_not_end_the_one_after_it():
    lines = backlog(5)
    late, newer = lines.stream(), lines.stream()
    assert next(newer).number == 1
    assert list(late) == []
    assert [line.number for line in newer] == [2, 3, 4, 5]


def test_who_waits_for_a_line_does_not_keep_another_from_those_that_are_there():
    may_end, is_asked = threading.Event(), threading.Event()

    def lines():
        yield line(1)
        is_asked.set()
        assert may_end.wait(30)
        yield line(2)
        yield line(3)

    backlog = Backlog(lines())
    late = backlog.stream()
    assert next(late).number == 1
    found = []
    thread = threading.Thread(target=lambda: found.extend(late))
    thread.start()
    assert is_asked.wait(30)
    newer = backlog.stream()
    assert next(newer).number == 1
    # What the other thread reads is its successor's.
    may_end.set()
    assert [line.number for line in newer] == [2, 3]
    thread.join(30)
    assert found == []


def test_what_reading_raises_is_raised_of_every_stream():
    def lines():
        yield line(1)
        raise OSError("the disk is gone")

    backlog = Backlog(lines())
    for _ in range(2):
        stream = backlog.stream()
        assert next(stream).number == 1
        with pytest.raises(OSError, match="the disk is gone"):
            next(stream)
