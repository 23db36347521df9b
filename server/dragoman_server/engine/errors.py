"""Errors of the engine.

EngineError
├── SentenceError               refused by submit: no batch could ever hold or decode it; a ValueError too
├── QueueFullError              refused by submit: too many sentences are waiting
│   └── QueueTooSlowError       refused by submit: the queue takes too long
├── EngineClosedError           refused by submit, or a sentence's answer: the engine is closed
├── EngineLostError             refused by submit, or a sentence's answer: its engine ended, and is replaced
├── DeadlineExpiredError        a sentence's answer: its deadline passed
├── DecoderError                a sentence's answer: decoding its batch failed; the cause is chained
├── PrecisionUnavailableError   the bundle has no graphs of the precision asked for; a ValueError too
└── DeviceUnavailableError      the device asked for cannot run the graphs
"""


class EngineError(Exception):
    """Base of everything the engine raises on purpose."""


class SentenceError(EngineError, ValueError):
    """The sentence can never be decoded: too long, too wide a beam, or a token outside the vocabulary."""


class QueueFullError(EngineError):
    """The sentences do not fit in the queue; none of them was accepted."""

    def __init__(
        self,
        *,
        num_sentences: int,
        num_waiting: int,
        max_queue: int,
        is_bulk: bool = False,
        expected_seconds: float = 0.0,
    ) -> None:
        """Says how full the queue is; with `is_bulk` of bulk sentences, which may fill only their share of
        it. Those that wait take about `expected_seconds`; 0 where nobody knows."""
        self.expected_seconds = expected_seconds
        super().__init__(
            f"{num_sentences} {'bulk ' * is_bulk}sentences do not fit in the queue: "
            f"{num_waiting} of {max_queue} are waiting; come again later or with fewer, "
            f"or start the server with a larger {'--max-bulk-share or ' * is_bulk}--max-queue"
        )


class QueueTooSlowError(QueueFullError):
    """The sentences would wait for too long; none of them was accepted."""

    def __init__(self, *, expected_seconds: float, max_seconds: float) -> None:
        self.expected_seconds = expected_seconds
        # Its base tells numbers that this one has not.
        EngineError.__init__(
            self,
            f"what waits takes about {expected_seconds:.1f} seconds, and more may wait only while that is at "
            f"most {max_seconds:g}; come again later, or start the server with larger --max-queue-seconds",
        )


class EngineClosedError(EngineError):
    """The engine takes no more work, or was closed before the sentence was answered."""


class EngineLostError(EngineError):
    """The engine that had the sentence ended or hung, or none of the model's runs at the moment."""


class DeadlineExpiredError(EngineError):
    """The sentence's deadline passed before it was translated."""


class DecoderError(EngineError):
    """The decoder failed on the batch that held the sentence."""


class PrecisionUnavailableError(EngineError, ValueError):
    """The bundle has no graphs of the precision asked for."""


class DeviceUnavailableError(EngineError):
    """The device asked for is missing or cannot run the graphs."""
