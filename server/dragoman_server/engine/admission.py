"""Which sentences an engine can decode at all, however long they wait."""

from dataclasses import dataclass
from typing import Any

from dragoman_server.engine.decoder import Decoder
from dragoman_server.engine.errors import SentenceError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Sentence
from dragoman_server.engine.scheduling.padding import padded_positions


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The bounds that sentences are checked against before they are accepted."""

    limits: EngineLimits
    source_vocabulary: int
    """How many tokens a source has to choose from."""
    target_vocabulary: int
    """The same of a target prefix."""

    @classmethod
    def to(cls, decoder: Decoder[Any], limits: EngineLimits) -> "Admission":
        """The admission to engines over the decoder."""
        return cls(
            limits=limits,
            source_vocabulary=decoder.source_vocabulary,
            target_vocabulary=decoder.target_vocabulary,
        )

    def check(self, sentence: Sentence) -> None:
        """Raises SentenceError for a sentence that no batch could ever hold, or with unknown tokens."""
        beam_size, length = sentence.options.beam_size, len(sentence.source)
        if beam_size > self.limits.max_beam_size:
            raise SentenceError(
                f"beam_size is {beam_size}, and the engine's max_beam_size {self.limits.max_beam_size}; "
                "ask for less, or start the server with a larger --max-beam-size"
            )
        if padded_positions(length) > self.limits.max_source_tokens:
            raise SentenceError(
                f"the source has {length} tokens, padded to {padded_positions(length)}, "
                f"and the engine's max_source_tokens is {self.limits.max_source_tokens}; "
                "send shorter sentences, or start the server with larger --max-source-tokens"
            )
        for name, ids, vocabulary in (
            ("source", sentence.source, self.source_vocabulary),
            ("target_start", sentence.target_start, self.target_vocabulary),
            ("target_prefix", sentence.target_prefix, self.target_vocabulary),
        ):
            if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
                wrong = next(id_ for id_ in ids if not 0 <= id_ < vocabulary)
                raise SentenceError(f"{name} holds token {wrong}; the vocabulary has {vocabulary} tokens")
