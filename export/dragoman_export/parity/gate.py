"""The gate: what the exported graphs decode is what their reference decodes, or no bundle is written.

The reference is PyTorch for what was trained here, and plain NumPy for models from elsewhere.

In fp32 they are the same, over batches of many lengths, sizes and beams, of sentences of random tokens:
- A whole beam search by each side finds the same tokens, which score the same.
- Step after step along the tokens of the reference's best hypothesis: the token's score, the candidates'
  scores and the attention.

In fp16 and int8 a search may well choose otherwise between two words of nearly the same score. So both sides
are held against each other step after step along the reference's own translations of some text (`loss`):
how far they are apart there, and how far the reference is from itself where it rounds as int8 does
(`check_loss`). That their search takes each row on from the right one they show against themselves: what it
found must score the same alone.

The graphs of a shortlist are compared so with the whole vocabulary as candidates, as far as memory allows,
and step by step with random candidates, other ones for each sentence, against a model that is kept to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.search import Hypothesis, Ids, Sentences, beam_search

from dragoman_export.model import KeptTo
from dragoman_export.parity.loss import BOUNDS, Loss, OwnWords, ParityError, Words, check_loss, score_alone
from dragoman_export.parity.onnx_stepper import OnnxStepper, ShortlistStepper
from dragoman_export.parity.sentences import BATCH_SHAPES, TEXT_LENGTHS, TEXT_STEPS, RandomSentences
from dragoman_export.reference.model import ReferenceModel, ReferenceStepper

TOLERANCE = 1e-4
"""Largest difference in fp32 of a score or an attention weight."""
TIE = 1e-5
"""Hypotheses whose scores differ by less may change places."""
MAX_CANDIDATES = 4096
"""Most random candidates of a sentence: about as many as a shortlist has for a batch."""
MAX_CANDIDATE_BYTES = 512 << 20
"""Most that the weights of a batch's candidates may take; each sentence has its own."""


@dataclass(frozen=True, kw_only=True)
class Parity:
    """How near the graphs came to the reference."""

    num_sentences: int
    """Sentences decoded by a beam search of both."""
    num_identical: int | None
    """The number of these whose best hypotheses are the same tokens; None where fp32, for which alone the
    reference searches, was not asked for."""
    num_tokens: int
    """Tokens compared step by step along the reference's translations of the text."""
    loss: float
    """Mean divergence of what the graphs say of the next token from what the reference says, in nats."""
    rounded_loss: float
    """The same of the reference rounding to eight bits."""
    entropy: float
    """Mean entropy of what the reference says of the next token, in nats."""
    agreement: float
    """Share of tokens at which both prefer the same next one."""
    max_error: float
    """Largest difference of the log-probability of a token that the reference drew, in nats."""
    attention_error: float
    """Mean over tokens of the largest difference of an attention weight."""

    def describe(self) -> str:
        """One line for people."""
        searched = ""
        if self.num_identical is not None:
            count = f"{self.num_identical} of {self.num_sentences}"
            searched = f"same translation of {count} sentences of random tokens; "
        return (
            f"{searched}over {self.num_tokens} tokens {self.loss:.1e} nats lost a token "
            f"({self.rounded_loss:.1e} by rounding the reference to eight bits, which is unsure by "
            f"{self.entropy:.2f}), the same next token in {self.agreement:.1%}, attention off by "
            f"{self.attention_error:.1e}"
        )


Hypotheses = Sequence[Sequence[Hypothesis]]
"""Of each sentence, best first."""


@dataclass(frozen=True)
class _Batch:
    decoding: DecodingDefaults
    sources: list[list[int]]
    expected: Hypotheses
    """What the reference finds; nothing where it has not searched."""


class ParityGate:
    """Decodes with the reference at most once, and holds the graphs of every precision against that."""

    def __init__(
        self,
        reference: ReferenceModel,
        decoding: DecodingDefaults,
        *,
        source_vocabulary: int,
        source_ids: SpecialIds,
        target_ids: SpecialIds,
        source_end: bool = True,
        text: Sentences | None = None,
        start: Sequence[int] = (),
    ) -> None:
        """`text` are ids of source sentences; without it random ones stand in, and what is said is drawn.
        Behind the token that all begin with, translations have those of `start`."""
        self._reference = reference
        self._stepper = ReferenceStepper(reference, source_pad_id=source_ids.pad, eos_id=target_ids.eos)
        longest = decoding.max_source_tokens
        random = RandomSentences(source_vocabulary, source_ids, source_end=source_end, max_tokens=longest)
        self._batches: list[_Batch] = []
        for shape in BATCH_SHAPES:
            steps = min(decoding.max_output_tokens, shape.max_steps)
            options = replace(decoding, beam_size=shape.beam_size, max_output_tokens=steps)
            self._batches.append(_Batch(options, random.of_lengths(shape.lengths), ()))
        self._listen = partial(
            OwnWords,
            sources=random.of_lengths(TEXT_LENGTHS) if text is None else text,
            pad_id=source_ids.pad,
            eos_id=target_ids.eos,
            max_steps=min(decoding.max_output_tokens, TEXT_STEPS),
            follows_draws=text is None,
            start=start,
        )
        self.words = self._listen(reference)
        """What the reference says of the text."""
        # The rounded reference is not kept: it has a copy of the weights.
        self._rounded = self.words.loss_of_reference(reference.rounded())

    def check(self, stepper: OnnxStepper, precision: str) -> Parity:
        """Decodes with the graphs. Raises ParityError where they differ by more than the precision allows."""
        found = self.words.loss_of_graphs(stepper)
        return self._conclude(stepper, precision, self.words, found, self._rounded)

    def check_shortlist(self, stepper: ShortlistStepper, precision: str) -> Parity:
        """Decodes with the graphs of a shortlist. Raises ParityError as `check` does."""
        random = np.random.default_rng(2)
        vocabulary, end = stepper.vocabulary_size, stepper.eos_id
        candidates = [_random_candidates(random, vocabulary, end) for _ in self.words.sources]
        kept = KeptTo(self._reference, candidates)
        words = self._listen(kept)
        rounded = words.loss_of_reference(kept.rounded())
        found = words.loss_of_graphs(stepper, candidates)
        # With the whole vocabulary as candidates each sentence has a copy of the output layer's weights.
        few = max(1, MAX_CANDIDATE_BYTES // (4 * stepper.output_weights))
        return self._conclude(stepper, precision, words, found, rounded, few)

    def _searched(self, precision: str) -> list[_Batch]:
        """The batches, with what the reference finds where fp32 needs it: its search takes longest."""
        if precision == "fp32" and not self._batches[0].expected:
            self._batches = [
                replace(batch, expected=beam_search(self._stepper, batch.sources, batch.decoding))
                for batch in self._batches
            ]
        return self._batches

    def _search(self, stepper: OnnxStepper, precision: str, batches: Sequence[_Batch]) -> int | None:
        """Decodes the batches; of how many sentences the reference's best is found, where that is known."""
        num_identical, pad, end = 0, stepper.source_pad_id, stepper.eos_id
        for batch in batches:
            found = beam_search(stepper, batch.sources, batch.decoding)
            if precision == "fp32":
                _check_hypotheses(batch, found)
                targets = [_steps(hypotheses[0], end) for hypotheses in batch.expected]
                words = Words(self._reference, batch.sources, targets, pad_id=pad, eos_id=end)
                _check_steps(words, words.loss_of_graphs(stepper))
            else:
                _check_beams(stepper, batch, found, precision)
            both = zip(found, batch.expected, strict=False)
            num_identical += sum(one[0].tokens == other[0].tokens for one, other in both)
        return num_identical if all(batch.expected for batch in batches) else None

    def _conclude(
        self,
        stepper: OnnxStepper,
        precision: str,
        words: OwnWords,
        found: Loss,
        rounded: Loss,
        few: int | None = None,
    ) -> Parity:
        """Checks what is lost along the words, and the search of each batch, or of its first `few`."""
        if precision == "fp32":
            _check_steps(words, found)
        else:
            check_loss(precision, found, rounded, float(words.entropy_N.mean()))
        batches = [
            _Batch(batch.decoding, batch.sources[:few], batch.expected[:few])
            for batch in self._searched(precision)
        ]
        return Parity(
            num_sentences=sum(len(batch.sources) for batch in batches),
            num_identical=self._search(stepper, precision, batches),
            num_tokens=len(found.divergence_N),
            loss=float(found.divergence_N.mean()),
            rounded_loss=float(rounded.divergence_N.mean()),
            entropy=float(words.entropy_N.mean()),
            agreement=float(found.agrees_N.mean()),
            max_error=float(found.drawn_N.max()),
            attention_error=float(found.attention_N.mean()),
        )


def _check_steps(words: Words, found: Loss) -> None:
    """Raises ParityError where fp32 graphs do not say what the reference says, token by token."""
    for name in ("drawn", "candidates", "attention"):
        apart_N = getattr(found, f"{name}_N")
        worst = int(np.argmax(np.nan_to_num(apart_N, nan=np.inf)))
        if not apart_N[worst] <= TOLERANCE:
            position, sentence = (places_N[worst] for places_N in words.places_N)
            raise ParityError(
                f"the fp32 graphs do not step as the reference does: {name} differs by {apart_N[worst]:.6f} "
                f"at token {position + 1}, batch of {len(words.sources)}, source of "
                f"{len(words.sources[sentence])} tokens; {TOLERANCE} is allowed"
            )


def _random_candidates(random: np.random.Generator, vocabulary: int, eos_id: int) -> Ids:
    """The end and some other tokens, up to half of the vocabulary."""
    most = min(vocabulary // 2, MAX_CANDIDATES)
    return np.union1d(random.choice(vocabulary, random.integers(2, max(3, most)), replace=False), [eos_id])


def _steps(hypothesis: Hypothesis, eos_id: int) -> list[int]:
    return [*hypothesis.tokens, eos_id] if hypothesis.ended else list(hypothesis.tokens)


def _check_hypotheses(batch: _Batch, found: Hypotheses) -> None:
    for source, expected, others in zip(batch.sources, batch.expected, found, strict=True):
        for rank, (one, other) in enumerate(zip(expected, others, strict=True)):
            apart = abs(one.score - other.score)
            # Written so that a score that is no number fails.
            if not (apart <= TOLERANCE and (one.tokens == other.tokens or apart <= TIE)):
                raise ParityError(
                    f"the fp32 graphs do not decode as the reference does: beam {batch.decoding.beam_size}, "
                    f"batch of {len(batch.sources)}, source of {len(source)} tokens, hypothesis {rank + 1}: "
                    f"the reference finds {list(one.tokens)} scoring {one.score:.6f}, "
                    f"the graphs {list(other.tokens)} scoring {other.score:.6f}"
                )


def _check_beams(stepper: OnnxStepper, batch: _Batch, found: Hypotheses, precision: str) -> None:
    """Holds each sentence's last hypothesis, seldom the first row throughout, against itself alone."""
    last = [hypotheses[-1] for hypotheses in found]
    alone = score_alone(stepper, batch.sources, [_steps(each, stepper.eos_id) for each in last])
    for source, one, score in zip(batch.sources, last, alone, strict=True):
        if not abs(one.log_probability - score) <= BOUNDS[precision].beam_error:
            raise ParityError(
                f"the {precision} graphs do not decode a beam as its rows alone: beam "
                f"{batch.decoding.beam_size}, batch of {len(batch.sources)}, source of {len(source)} tokens: "
                f"the search finds {list(one.tokens)} with a log-probability of {one.log_probability:.6f}, "
                f"which alone is {score:.6f}"
            )
