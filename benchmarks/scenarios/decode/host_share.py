"""How much of the wall time passes outside onnxruntime: scheduling, beam bookkeeping, building responses."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from unittest import mock

from dragoman_bundle import Bundle
from onnxruntime import InferenceSession

from benchmarks.engines import running_engine, translation_options
from benchmarks.report import Row, Table
from dragoman_server.engine import BatchStepped, Event
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.text.stages import advance, complete, prepare

PLACES = 96
"""Sentences that a batch holds, for about 64 in the mean: newcomers are let in where three quarters are
free, and at a file's end none are left."""
_CALLS = ("run", "run_with_iobinding", "run_with_ort_values")
_OF_A_STEP = "token"
"""An input of a step's graph, and of no other."""


@dataclass
class Clock:
    """Seconds that onnxruntime was at work, and steps; runs under way at the same time count each."""

    step_seconds: float = 0.0
    encoder_seconds: float = 0.0
    """Everything but steps: encoding, and gathering candidates."""
    num_steps: int = 0
    num_sentences: int = 0
    """Sentences of all steps."""

    def hear(self, event: Event) -> None:
        """Counts what the engine reports."""
        if isinstance(event, BatchStepped):
            self.num_steps += 1
            self.num_sentences += event.num_sentences


def measure_host_share(
    bundle: Bundle, decoder: OnnxDecoder, lines: Sequence[str], beam_size: int, repeats: int
) -> dict[str, float]:
    """Translates the lines with one engine and says where the time went: the repeat with the median share."""
    runs = [_measure(bundle, decoder, lines, beam_size) for _ in range(repeats)]
    return sorted(runs, key=itemgetter("outside_share"))[repeats // 2]


def _measure(bundle: Bundle, decoder: OnnxDecoder, lines: Sequence[str], beam_size: int) -> dict[str, float]:
    options, clock, max_rows = translation_options(bundle, beam_size), Clock(), PLACES * beam_size
    with (
        _clocked_sessions(clock),
        running_engine(decoder, beam_size=beam_size, listener=clock.hear, max_rows=max_rows) as engine,
    ):
        started = time.perf_counter()
        documents = [prepare(line, bundle, options, deadline=None) for line in lines]
        tokenized = time.perf_counter()
        futures = engine.submit([sentence for document in documents for sentence in document.sentences])
        # Woken once: as in a process of its own, nobody else takes Python's lock meanwhile.
        wait(futures)
        results = iter([future.result() for future in futures])
        searched = time.perf_counter()
        for document in documents:
            complete(advance(document, [next(results) for _ in document.sentences]))
        ended = time.perf_counter()
    assert clock.step_seconds, "the decoder calls onnxruntime in a way that is not clocked"
    tokenize, search, response = tokenized - started, searched - tokenized, ended - searched
    outside = search - clock.encoder_seconds - clock.step_seconds
    return {
        "wall_seconds": ended - started,
        "tokenize_seconds": tokenize,
        "encoder_seconds": clock.encoder_seconds,
        "step_seconds": clock.step_seconds,
        "engine_seconds": outside,
        "response_seconds": response,
        "outside_share": (outside + response) / (search + response),
        "outside_share_with_tokenizing": (tokenize + outside + response) / (ended - started),
        "mean_sentences": clock.num_sentences / clock.num_steps,
    }


@contextmanager
def _clocked_sessions(clock: Clock) -> Iterator[None]:
    """Notes every run of every session meanwhile, without the engine's knowing of it."""
    # With the session, which is not to end meanwhile: another one might take its number.
    known: dict[int, tuple[InferenceSession, bool]] = {}

    def clocked(call: str) -> Callable[..., Any]:
        original = getattr(InferenceSession, call)

        def run(session: InferenceSession, *arguments: Any, **options: Any) -> Any:
            if id(session) not in known:
                known[id(session)] = session, any(value.name == _OF_A_STEP for value in session.get_inputs())
            started = time.perf_counter()
            try:
                return original(session, *arguments, **options)
            finally:
                name = "step_seconds" if known[id(session)][1] else "encoder_seconds"
                setattr(clock, name, getattr(clock, name) + time.perf_counter() - started)

        return run

    with ExitStack() as stack:
        for call in _CALLS:
            stack.enter_context(mock.patch.object(InferenceSession, call, clocked(call)))
        yield


def host_table(rows: Sequence[Row]) -> Table:
    """Where wall time goes."""
    return Table(
        name="host",
        title="Wall time outside onnxruntime (int8)",
        columns=[
            ("system", "system"),
            ("beam", "beam", "d"),
            ("mean_sentences", "sentences a step", ".1f"),
            ("wall_seconds", "wall s", ".2f"),
            ("tokenize_seconds", "tokenize s", ".3f"),
            ("encoder_seconds", "encoder, shortlist s", ".3f"),
            ("step_seconds", "steps s", ".2f"),
            ("engine_seconds", "engine s", ".3f"),
            ("response_seconds", "response s", ".3f"),
            ("outside_share", "outside", ".1%"),
            ("outside_share_with_tokenizing", "with tokenizing", ".1%"),
        ],
        rows=rows,
        note="Of one engine; several are processes, which have only the cores in common. Outside: the "
        "engine's own time (scheduling, beams, regrouping) and building responses, as a share of the time "
        "from the first sentence's submission on. The aim is at most 15% at beam 5 and 64 sentences a step.",
    )
