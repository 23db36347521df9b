"""An accepted sentence on its way through the engine."""

from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

from dragoman_server.engine.request import Hypothesis, Priority, Sentence, SentenceResult


@dataclass(eq=False, kw_only=True)
class Ticket:
    """A sentence, when things happened to it, and the future that its caller holds."""

    sentence: Sentence
    accepted_at: float
    """When it was let in, in seconds of `time.monotonic`, as all times here."""
    encoding_at: float = 0.0
    """When its encoding began."""
    encoded_at: float = 0.0
    """When its encoding ended."""
    arrival: int = -1
    """Its number in the order of arrival at its engine."""
    future: Future[SentenceResult] = field(default_factory=Future)
    """Never set to running, so that the caller can cancel it at any time."""

    length: int = field(init=False)
    """Tokens of its source."""
    is_bulk: bool = field(init=False)
    """Whether it is part of a job."""

    def __post_init__(self) -> None:
        self.length = len(self.sentence.source)
        self.is_bulk = self.sentence.priority is Priority.BULK

    def answer(self, hypotheses: Sequence[Hypothesis], now: float) -> bool:
        """Sets the result; False where the caller cancelled before."""
        result = SentenceResult(
            hypotheses=tuple(hypotheses),
            queue_seconds=self.encoding_at - self.accepted_at,
            encode_seconds=self.encoded_at - self.encoding_at,
            decode_seconds=now - self.encoded_at,
        )
        return settle(self.future, result)


def settle(future: Future[SentenceResult], answer: SentenceResult | Exception) -> bool:
    """Sets the result or the error; False where the caller cancelled before."""
    try:
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
    except InvalidStateError:
        return False
    return True
