"""Measures one engine: how long texts are decoded, and what turns and encodings take."""

import itertools
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

import numpy as np
from dragoman_bundle import Bundle

from dragoman_server.engine import Engine, EngineLimits, Sentence, SentenceResult
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.sizing.figures import EngineFigures, Length, Text
from dragoman_server.sizing.watch import WatchingScheduler
from dragoman_server.text.document import prepare
from dragoman_server.text.options import TranslationOptions

LENGTHS_SHARE = 0.3
"""Share of the time in which texts are decoded to know how long they are."""
MIN_TURNS = 8
"""Fewer turns of a size tell nothing."""


class LoadError(ValueError):
    """A load from which nothing can be learned, or that no number of servers answers in time."""


def measure_engine(
    bundle: Bundle,
    decoder: OnnxDecoder,
    lines: Sequence[str],
    options: TranslationOptions,
    *,
    seconds: float,
    on_progress: Callable[[str], None],
) -> EngineFigures:
    """Measures the cost of the engine's work on these texts, in about so many seconds. Raises LoadError."""
    prepared = [prepare(line, bundle, options, deadline=None).sentences for line in lines]
    if not any(prepared):
        raise LoadError(f"none of the {len(lines)} texts has anything to translate; give some that have")
    limits = EngineLimits(max_beam_size=max(EngineLimits.max_beam_size, options.beam_size))
    watch = WatchingScheduler(limits)
    engine = Engine(decoder, limits=limits, scheduler=watch)
    engine.start()
    most = max(1, limits.max_rows // options.beam_size)
    try:
        on_progress("how long texts are")
        texts = _lengths(engine, watch, prepared, most, seconds * LENGTHS_SHARE)
        sentences = [sentence for text in prepared[: len(texts)] for sentence in text]
        levels = [2**power for power in range(most.bit_length()) if 2**power < most] + [most]
        for level in levels:
            on_progress(f"turns of {level * options.beam_size} rows")
            endless = itertools.cycle(sentences)
            _keep_busy(engine, endless, level, seconds * (1 - LENGTHS_SHARE) / len(levels))
    finally:
        engine.close()
    rows, took = _by_rows(watch.turns)
    fixed, slope = _line(watch.encodings)
    return EngineFigures(
        texts=texts,
        beam_size=options.beam_size,
        turn_rows=rows,
        turn_seconds=took,
        encoding_seconds=fixed,
        position_seconds=slope,
    )


def _lengths(
    engine: Engine,
    watch: WatchingScheduler,
    prepared: Sequence[Sequence[Sentence]],
    most: int,
    seconds: float,
) -> list[Text]:
    """The seconds of translating texts one after another for about that time; at least the first is
    translated."""
    until = time.monotonic() + seconds
    texts: list[Text] = []
    waiting = iter(prepared)
    while len(texts) < len(prepared) and (not texts or time.monotonic() < until):
        portion = list(itertools.islice(waiting, most))
        futures = [engine.submit(sentences) for sentences in portion]
        for sentences, answers in zip(portion, futures, strict=True):
            for answer in answers:
                answer.result()
            texts.append(
                tuple(
                    Length(source_tokens=len(sentence.source), steps=watch.steps[answer])
                    for sentence, answer in zip(sentences, answers, strict=True)
                )
            )
    if not any(texts):
        raise LoadError(f"the first {len(texts)} texts have nothing to translate; put some before them")
    return texts


def _keep_busy(engine: Engine, sentences: Iterator[Sentence], level: int, seconds: float) -> None:
    """So many sentences are in the engine for so long: one that ends is followed by another."""
    until = time.monotonic() + seconds
    answered: queue.SimpleQueue[Future[SentenceResult]] = queue.SimpleQueue()

    def submit(number: int) -> None:
        for future in engine.submit(list(itertools.islice(sentences, number))):
            future.add_done_callback(answered.put)

    submit(level)
    num_left = level
    while num_left:
        answered.get().result()
        num_left -= 1
        if time.monotonic() < until:
            submit(1)
            num_left += 1


def _by_rows(turns: Sequence[tuple[int, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean rows and seconds of turns of about the same size: each an eighth larger than the last, or more."""
    rows, seconds = np.array(turns, dtype=float).T
    size = np.round(np.log(rows) / np.log(1.125)).astype(int)
    means = [
        (float(rows[size == bucket].mean()), float(seconds[size == bucket].mean()))
        for bucket in np.unique(size)
        if (size == bucket).sum() >= MIN_TURNS
    ] or [(float(rows.mean()), float(seconds.mean()))]
    return tuple(mean for mean, _ in means), tuple(mean for _, mean in means)


def _line(encodings: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """The seconds of an encoding and of each of its positions, by least squares; neither is below zero."""
    positions, seconds = np.array(encodings, dtype=float).T
    variance = positions.var()
    slope = float(np.cov(positions, seconds, bias=True)[0, 1] / variance) if variance else 0.0
    slope = min(max(slope, 0.0), float(seconds.mean() / positions.mean()))
    return float(seconds.mean()) - slope * float(positions.mean()), slope
