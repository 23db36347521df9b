"""The engine: a thread that decodes what it is given and answers through futures.

Owns the thread and the order of events; the scheduler decides, the decoder and the beams do. All of them
belong to that thread: callers put into its inbox what they want, and read what it publishes.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from typing import Any

from dragoman_server.engine import events
from dragoman_server.engine.decoder import Batch, Decoder
from dragoman_server.engine.errors import DeadlineExpiredError, DecoderError, EngineClosedError, EngineError
from dragoman_server.engine.heartbeat import Heartbeat
from dragoman_server.engine.inbox import Inbox
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Hypothesis, Priority, Sentence, SentenceResult
from dragoman_server.engine.scheduling.lane import Lane, Regrouping
from dragoman_server.engine.scheduling.scheduler import Scheduler
from dragoman_server.engine.search.beam import Beams
from dragoman_server.engine.ticket import Ticket, settle

_GRACE_SECONDS = 5.0
"""How long a thread that may hang is waited for when it is to end."""

RELEASE_SECONDS = 10.0
"""Memory is given back so long after work began at the earliest, and when there is none."""

logger = logging.getLogger(__name__)


class _Run:
    """The running batch of a lane."""

    def __init__(self, decoder: Decoder[Any], beam_size: int) -> None:
        self.batch: Batch[Any] = decoder.open_batch(beam_size)
        self.beams = Beams(
            beam_size=beam_size, vocabulary=decoder.target_vocabulary, bos=decoder.bos, eos=decoder.eos
        )
        self.tickets: tuple[Ticket, ...] = ()
        # What becomes of tickets that are finished and have yet to leave, and after how many steps.
        self.finished: dict[Ticket, tuple[tuple[Hypothesis, ...], int]] = {}
        self.source_positions = 0
        self.padded_positions = 0

    def regroup(self, regrouping: Regrouping, encoded: Sequence[Any], joined: Iterable[Ticket]) -> None:
        self.tickets = regrouping.tickets
        self.source_positions = sum(ticket.length for ticket in self.tickets)
        self.padded_positions = len(self.tickets) * regrouping.source_positions
        self.batch.regroup(regrouping.origin_S, encoded, regrouping.source_positions)
        self.beams.regroup(regrouping.origin_S, [ticket.sentence for ticket in joined])


class Engine:
    """Translates the sentences of many callers together. Its methods may be called from any thread."""

    num_engines = 1
    """Batches that it decodes side by side."""
    is_restarting = False
    """Whether it ended and is replaced: never, since a thread can't be killed."""
    pid: int | None = None
    """The process that it has of its own: none."""

    def __init__(
        self,
        decoder: Decoder[Any],
        *,
        limits: EngineLimits,
        listener: events.Listener = events.ignore,
        timeout_seconds: float | None = None,
        scheduler: Scheduler | None = None,
        number: int = 0,
    ) -> None:
        """Makes an engine that counts as ended when one run of a graph takes longer than `timeout_seconds`.
        The `scheduler` is one of the limits unless it is given. `number` tells engines of a model apart."""
        self._decoder = decoder
        self._number = number
        self._tell = listener
        self.num_left: Mapping[Priority, int] = dict.fromkeys(Priority, 0)
        """The number of those submitted that no longer wait, by priority, as of the last turn."""
        self.num_running = 0
        """Sentences that are being encoded or decoded, as of the last turn."""
        self._inbox = Inbox()
        self._runs: dict[Lane, _Run] = {}
        self._scheduler = scheduler or Scheduler(limits)
        self._num_taken_in = dict.fromkeys(Priority, 0)
        # When memory that work took is given back; None where none has been done since it was.
        self._release_at: float | None = None
        # Since when it works on what it has yet to tell of.
        self._busy_since = time.monotonic()
        self.has_ended = False
        """Whether nothing is decoded any more: its thread ended or hangs, or it was closed."""
        self._on_change: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._work, name="dragoman-engine", daemon=True)
        self._heartbeat: Heartbeat | None = None
        if timeout_seconds is not None:
            ask, give_up = self.wake, self._give_up
            self._heartbeat = Heartbeat(ask=ask, on_silence=give_up, timeout_seconds=timeout_seconds)

    def start(self) -> None:
        """Starts the engine's thread. Sentences may have been submitted before."""
        self._thread.start()
        if self._heartbeat:
            self._heartbeat.start()

    def submit(self, sentences: Sequence[Sentence]) -> list[Future[SentenceResult]]:
        """Accepts sentences that pass `check`, however many; their futures may be cancelled at any time.

        A future ends with a result, DeadlineExpiredError, DecoderError or EngineClosedError. Raises
        EngineClosedError, and then accepts none.
        """
        now = time.monotonic()
        tickets = [Ticket(sentence=sentence, accepted_at=now) for sentence in sentences]
        self._inbox.submit(tickets)
        for ticket in tickets:
            # Futures keep their callbacks: with the ticket, which has the future, its result would stay until
            # somebody collects cycles.
            ticket.future.add_done_callback(partial(self._note_if_cancelled, weakref.ref(ticket)))
        return [ticket.future for ticket in tickets]

    def close(self) -> None:
        """Ends the thread after the step it is in; what is left fails with EngineClosedError."""
        self._inbox.close()
        if self._heartbeat:
            self._heartbeat.stop()
        if self._thread.is_alive():
            # A thread can't be killed: one that hangs holds up nobody, and ends with the process.
            self._thread.join(_GRACE_SECONDS if self._heartbeat else None)
        self._end_all()

    def wait(self) -> None:
        """Returns once its thread has ended, however that came about."""
        self._thread.join()

    def wake(self) -> None:
        """Has the thread, if it waits for work, look around and tell that its turn ended."""
        self._inbox.wake()

    def watch(self, on_change: Callable[[], None]) -> None:
        """Has `on_change` called, in any thread, whenever `is_alive` or `num_left` has changed."""
        self._on_change = on_change

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs, and so sentences are decoded."""
        return self._thread.is_alive() and not self.has_ended

    def _note_if_cancelled(self, ticket: weakref.ref[Ticket], future: Future[SentenceResult]) -> None:
        if future.cancelled():
            # Wakes callers that wait for several futures; nobody else marks a cancelled one.
            future.set_running_or_notify_cancel()
            # If the ticket is gone, the sentence had already ended in another way.
            if (cancelled := ticket()) is not None:
                self._inbox.cancel(cancelled)

    def _work(self) -> None:
        try:
            while (turn := self._next_turn()) is not None:
                lane, groups = turn
                try:
                    self._take_turn(lane, groups)
                except Exception as error:
                    # The decoder's or our own: it costs the sentences of this turn, and none after them.
                    self._fail_batch(lane.running, error)
        except BaseException:
            logger.exception("the engine's thread ended; nothing more is decoded")
            raise
        finally:
            # Nobody waits for an answer that never comes.
            self._inbox.close()
            self._runs.clear()
            self._end_all()
            self.has_ended = True
            self._on_change()

    def _give_up(self) -> None:
        logger.error("the engine's thread hangs; nothing more is decoded")
        self.has_ended = True
        self._on_change()

    def _show_life(self) -> None:
        """Shows that the engine lives, between two runs of the graphs."""
        if self._heartbeat:
            self._heartbeat.answer()
        self._tell(events.TurnEnded())

    def _next_turn(self) -> tuple[Lane, list[list[Ticket]]] | None:
        """Waits for work. The lane whose turn it is and the groups to join it; None once closed."""
        while True:
            # What ended since the last look may have been the last ticket: nobody tells it later.
            self._publish()
            self._show_life()
            is_busy = self._scheduler.num_waiting or self._scheduler.num_running
            release_at = self._release_at
            timeout_seconds = None if release_at is None else max(0.0, release_at - time.monotonic())
            has_work = is_busy or self._inbox.wait(timeout_seconds)
            if not is_busy:
                self._busy_since = time.monotonic()
            if self._inbox.is_closed:
                return None
            if not has_work:
                self._release_memory()
                continue
            self._take_in()
            turn = self._scheduler.next_turn(time.monotonic())
            self._publish()
            self._drop_empty_runs()
            for ticket in turn.late:
                late = DeadlineExpiredError("the deadline is too close for an answer in time")
                self._fail(ticket, late, events.Outcome.EXPIRED)
            if turn.lane is not None:
                if self._release_at is None:
                    self._release_at = time.monotonic() + RELEASE_SECONDS
                return turn.lane, turn.groups

    def _release_memory(self) -> None:
        self._release_at = None
        self._drop_empty_runs()
        try:
            self._decoder.release_memory()
        except Exception:
            # It may still decode; if it does not, the callers of its sentences are told.
            logger.exception("memory could not be given back")

    def _publish(self) -> None:
        """Lets others read how many run and how many no longer wait."""
        self.num_running = self._scheduler.num_running
        taken_in = self._num_taken_in.items()
        self._publish_left({key: number - self._scheduler.num_waiting_of(key) for key, number in taken_in})

    def _publish_left(self, num_left: Mapping[Priority, int]) -> None:
        if num_left != self.num_left:
            self.num_left = num_left
            self._tell(events.QueueLeft(num_left))
            self._on_change()

    def _take_in(self) -> None:
        """Empties the inbox: newcomers wait; the cancelled and the expired are taken out."""
        arrived, cancelled = self._inbox.empty()
        self._count(arrived)
        self._scheduler.add(arrived)
        self._scheduler.remove(cancelled)
        for ticket in cancelled:
            self._end(ticket, events.Outcome.CANCELLED)
        for ticket in self._scheduler.expire(time.monotonic()):
            self._fail(ticket, DeadlineExpiredError("the deadline passed"), events.Outcome.EXPIRED)
        self._drop_empty_runs()

    def _count(self, arrived: Iterable[Ticket]) -> None:
        for ticket in arrived:
            self._num_taken_in[ticket.sentence.priority] += 1

    def _take_turn(self, lane: Lane, groups: list[list[Ticket]]) -> None:
        """Encodes the groups, lets them join, and advances the lane by one token."""
        began = time.monotonic()
        encoded = []
        for number, group in enumerate(groups):
            if number:
                # A question for a sign of life waits for one group, not for all of them.
                self._show_life()
            # An encoding may take as long as many steps: meanwhile some of the next group may have ended.
            self._take_in()
            present = set(lane.joining)
            group = [ticket for ticket in group if ticket in present]
            if group and (memory := self._encode(lane, group)) is not None:
                encoded.append((group, memory))
        if groups:
            self._take_in()
        joined = [ticket for group, _ in encoded for ticket in group]
        regrouping = lane.settle([group for group, _ in encoded])
        if not lane.num_running:
            return
        if regrouping is not None and regrouping.begins_anew:
            self._runs[lane] = _Run(self._decoder, lane.beam_size)
        run = self._runs[lane]
        if regrouping is not None:
            run.regroup(regrouping, [memory for _, memory in encoded], joined)
        started = time.monotonic()
        output = run.batch.step(run.beams.rows())
        now = time.monotonic()
        self._tell(
            events.BatchStepped(
                engine=self._number,
                num_sentences=len(run.tickets),
                num_rows=len(run.tickets) * lane.beam_size,
                num_bulk_rows=lane.num_bulk_rows,
                rows_in_use=self._scheduler.num_rows,
                source_positions=run.source_positions,
                padded_positions=run.padded_positions,
                seconds=now - started,
                busy_seconds=now - self._busy_since,
                row_seconds=self._scheduler.row_seconds,
            )
        )
        self._busy_since = now
        for place in run.beams.advance(output):
            if (ticket := run.tickets[place]) not in run.finished:
                run.finished[ticket] = run.beams.hypotheses(place), run.beams.age(place)
        self._scheduler.on_turn(lane, time.monotonic() - began)
        leaving = lane.leaving(run.finished.keys())
        for ticket in leaving:
            hypotheses, num_steps = run.finished.pop(ticket)
            if hypotheses:
                self._scheduler.on_finish(ticket, num_steps)
                was_waited_for = ticket.answer(hypotheses, now)
                self._end(ticket, events.Outcome.FINISHED if was_waited_for else events.Outcome.CANCELLED)
            else:
                numberless = DecoderError("no hypothesis of the sentence has a finite score")
                self._fail(ticket, numberless, events.Outcome.FAILED)
        self._remove(leaving)

    def _encode(self, lane: Lane, group: list[Ticket]) -> Any | None:
        """What the decoder makes of the group; None where it failed, and the group with it."""
        started = time.monotonic()
        sources = [ticket.sentence.source for ticket in group]
        try:
            encoded = self._decoder.encode(sources, lane.beam_size)
        except Exception as error:
            self._fail_batch(group, error)
            return None
        now = time.monotonic()
        self._scheduler.on_encode(now - started)
        for ticket in group:
            ticket.encoding_at, ticket.encoded_at = started, now
        return encoded

    def _fail_batch(self, tickets: Sequence[Ticket], cause: Exception) -> None:
        for ticket in tickets:
            if ticket.future.done() and not ticket.future.cancelled():
                continue
            error = DecoderError(f"the decoder failed: {type(cause).__name__}: {cause}")
            error.__cause__ = cause
            self._fail(ticket, error, events.Outcome.FAILED)
        self._remove(tickets)

    def _end_all(self) -> None:
        """Fails what is left. In the thread as it ends; in another where it was never started, or hangs."""
        arrived, _ = self._inbox.empty()
        self._count(arrived)
        self.num_running = 0
        self._publish_left(dict(self._num_taken_in))
        for ticket in self._inbox.unended():
            error = EngineClosedError("the engine was closed before the sentence was translated")
            self._fail(ticket, error, events.Outcome.CLOSED)

    def _fail(self, ticket: Ticket, error: EngineError, outcome: events.Outcome) -> None:
        self._end(ticket, outcome if settle(ticket.future, error) else events.Outcome.CANCELLED)

    def _end(self, ticket: Ticket, outcome: events.Outcome) -> None:
        """Tells once how a sentence ended."""
        if self._inbox.end(ticket):
            self._tell(events.SentenceEnded(outcome))

    def _remove(self, tickets: Iterable[Ticket]) -> None:
        """Frees the rows of tickets that were answered."""
        self._scheduler.remove(tickets)
        self._drop_empty_runs()

    def _drop_empty_runs(self) -> None:
        """Frees the batches of lanes that ran empty, and lets these begin anew."""
        self._runs = {lane: run for lane, run in self._runs.items() if lane.num_running}


def warm(decoder: Decoder[Any], limits: EngineLimits, sentence: Sentence) -> None:
    """Decodes the sentence. Raises DecoderError.

    In an engine of its own: it must count neither as traffic nor towards the learnt pace.
    """
    with closing(Engine(decoder, limits=limits)) as engine:
        engine.start()
        engine.submit([sentence])[0].result()
