"""Requests that make no sense are refused, and the message names the field."""

import dataclasses

import pytest

from dragoman_server.engine.request import SearchOptions, Sentence

OPTIONS = SearchOptions(beam_size=4, num_hypotheses=2, length_penalty=1.0, max_output_tokens=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_size": 0, "num_hypotheses": 0}, "beam_size is 0"),
        ({"num_hypotheses": 0}, "num_hypotheses is 0"),
        ({"num_hypotheses": 5}, "num_hypotheses is 5; it must be from 1 to the beam_size, 4"),
        ({"length_penalty": -0.1}, r"length_penalty is -0\.1"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"max_output_tokens": 0}, "max_output_tokens is 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]


def test_a_source_needs_at_least_its_end() -> None:
    with pytest.raises(ValueError, match="source is empty"):
        Sentence(source=(), options=OPTIONS)


def test_a_prefix_must_leave_room_for_a_token() -> None:
    Sentence(source=(1,), options=OPTIONS, target_prefix=(5, 5))
    with pytest.raises(ValueError, match=r"target_prefix has 3 tokens.*max_output_tokens = 3"):
        Sentence(source=(1,), options=OPTIONS, target_prefix=(5, 5, 5))
