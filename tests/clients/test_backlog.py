"""Lines are handed to one stream at a time, in whichever order threads wake."""

from dragoman.jobs.backlog import Backlog
from dragoman.jobs.format import TextLines
from dragoman.jobs.lines import parse_line


def backlog(num_lines: int) -> Backlog:
    return Backlog(
        parse_line(b"%d\n" % number, TextLines(), number=number, position=number)
        for number in range(1, num_lines + 1)
    )


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
