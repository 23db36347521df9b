"""What makes no sense, what no batch could ever hold, and who finds the queue full is refused."""

import dataclasses
from contextlib import nullcontext

import pytest
from tests.engine.house import VOCABULARY, sentence

from dragoman_server.engine.errors import QueueFullError, SentenceError
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.request import Priority, SearchOptions, Sentence

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


def test_a_source_needs_at_least_its_end_and_a_prefix_must_leave_room_for_a_token() -> None:
    with pytest.raises(ValueError, match="source is empty"):
        Sentence(source=(), options=OPTIONS)
    Sentence(source=(1,), options=OPTIONS, target_prefix=(5, 5))
    with pytest.raises(ValueError, match=r"target_prefix has 3 tokens.*max_output_tokens = 3"):
        Sentence(source=(1,), options=OPTIONS, target_prefix=(5, 5, 5))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (sentence(5, 1000), r"source holds token 1000; the vocabulary has 1000 tokens"),
        (sentence(-1), r"source holds token -1"),
        (sentence(5, target_prefix=(2, 6)), r"target_prefix holds token 6; the vocabulary has 6 tokens"),
        (sentence(*[5] * 17), r"17 tokens, padded to 24, .* max_source_tokens is 16; .* --max-source-tokens"),
        (sentence(5, beam_size=5), r"beam_size is 5, and the engine's max_beam_size 4; .* --max-beam-size"),
    ],
)
def test_a_sentence_that_can_never_be_decoded_does_not_pass(wrong: Sentence, message: str) -> None:
    limits = EngineLimits(max_source_tokens=16, max_beam_size=4)
    admission = Admission(limits=limits, source_vocabulary=1000, target_vocabulary=VOCABULARY)
    admission.check(sentence(*[999] * 16, beam_size=4, target_prefix=(5,)))
    with pytest.raises(SentenceError, match=message):
        admission.check(wrong)


@pytest.mark.parametrize("name", ["max_rows", "max_source_tokens", "max_queue", "max_beam_size"])
def test_a_limit_that_leaves_no_room_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        EngineLimits(**{name: 0})  # type: ignore[arg-type]


def test_the_widest_beam_must_fit_the_rows() -> None:
    with pytest.raises(ValueError, match="max_beam_size is 16, more rows than max_rows = 10"):
        EngineLimits(max_rows=10)


BULK_IS_FULL = (
    "1 bulk sentences do not fit in the queue: 2 of 2 are waiting; come again later or with fewer, "
    "or start the server with a larger --max-bulk-share or --max-queue"
)


@pytest.mark.parametrize(
    ("max_queue", "coming", "waiting", "full"),
    [
        (3, (1, 0), (2, 0), None),
        (3, (2, 0), (2, 0), r"2 sentences .* queue: 2 of 3 are waiting; .* with a larger --max-queue"),
        (4, (2, 0), (0, 2), None),
        # Of bulk's share others take nothing.
        (4, (0, 1), (2, 1), None),
        (4, (1, 1), (0, 2), BULK_IS_FULL),
        # Where others fill it, no larger share helps bulk.
        (4, (0, 1), (2, 2), r"1 sentences .* queue: 4 of 4 are waiting; .* with a larger --max-queue"),
        # As where bulk was set back.
        (2, (0, 0), (0, 3), None),
    ],
)
def test_the_queue_takes_all_or_nothing_and_of_bulk_no_more_than_its_share(
    max_queue: int, coming: tuple[int, int], waiting: tuple[int, int], full: str | None
) -> None:
    """Numbers of interactive sentences and of bulk."""
    limits = EngineLimits(max_queue=max_queue, max_bulk_share=0.5)
    with pytest.raises(QueueFullError, match=full) if full else nullcontext():
        limits.check_queue(
            coming=dict(zip(Priority, coming, strict=True)), waiting=dict(zip(Priority, waiting, strict=True))
        )
