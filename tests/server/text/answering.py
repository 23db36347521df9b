"""A model that answers whatever a test says: for what must hold with any model."""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from dragoman_bundle import Bundle, open_bundle
from tests.shipped import shipped_bundle

from dragoman_server.engine import FinishReason, Hypothesis, Sentence, SentenceResult
from dragoman_server.text.mapped import Span
from dragoman_server.text.options import TextFormat, TranslationOptions
from dragoman_server.text.stages import advance, complete, prepare
from dragoman_server.text.translated import TranslatedText

Answer = Callable[[str], str]
"""Says what the model answers to what it is shown."""

MAX_ROUNDS = 3


@functools.cache
def shipped(direction: str = "de-en") -> Bundle:
    """A shipped bundle, for its tokenizers."""
    return open_bundle(shipped_bundle(direction))


def translated(
    text: str,
    bundle: Bundle,
    options: TranslationOptions,
    answer: Answer,
    ranges: Sequence[Span] = (),
    *,
    is_blind: bool = False,
) -> TranslatedText:
    """A text on its whole way, but for the engine; with a model that may look at nothing."""
    document = prepare(text, bundle, options, None, ranges)
    for _ in range(MAX_ROUNDS):
        results = [_result(sentence, bundle, answer, is_blind=is_blind) for sentence in document.sentences]
        document = advance(document, results)
    assert not document.sentences
    return complete(document)


def _result(sentence: Sentence, bundle: Bundle, answer: Answer, *, is_blind: bool) -> SentenceResult:
    shown = bundle.source_tokenizer.decode_text(sentence.source[:-1])
    tokens = tuple(bundle.target_tokenizer.encode(answer(shown)).ids)
    attention: npt.NDArray[np.float32] | None = None
    if sentence.return_attention:
        if is_blind:
            attention = np.zeros((len(tokens) + 1, len(sentence.source)), dtype=np.float32)
        elif tokens == sentence.source[:-1]:
            # A step may attend where the token that it reads is from.
            of_input = int(bundle.manifest.attention_of_input)
            attention = np.eye(len(tokens) + 1, len(sentence.source), -of_input, dtype=np.float32)
        else:
            generator = np.random.default_rng(len(shown))
            attention = generator.random((len(tokens) + 1, len(sentence.source)), dtype=np.float32)
    hypothesis = Hypothesis(
        tokens=tokens, score=-1.0, log_probability=-5.0, finish_reason=FinishReason.STOP, attention=attention
    )
    return SentenceResult(hypotheses=(hypothesis,), queue_seconds=1.0, encode_seconds=2.0, decode_seconds=4.0)


def noting(answer: Answer) -> tuple[list[str], Answer]:
    """What a model is shown, and this answer of it."""
    shown: list[str] = []

    def note(text: str) -> str:
        shown.append(text)
        return answer(text)

    return shown, note


def copies(shown: str) -> str:
    return shown


def forgets(shown: str) -> str:
    """Says nothing of what it is shown."""
    return "it is good"


def says_nothing(shown: str) -> str:
    return ""


def doubles(shown: str) -> str:
    return f"{shown} {shown}"


def shuffles(shown: str) -> str:
    words = shown.split()
    random.Random(len(shown)).shuffle(words)
    return " ".join(words)


ANSWERS: tuple[Answer, ...] = (copies, forgets, says_nothing, doubles, shuffles)
ANSWERING = pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
PLAIN = TranslationOptions(beam_size=1, length_penalty=1.0)
ALIGNED = replace(PLAIN, return_alignments=True)
HTML = replace(ALIGNED, text_format=TextFormat.HTML)
