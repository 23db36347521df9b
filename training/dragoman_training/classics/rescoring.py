"""Translations chosen among a model's best ones by what models say of them: P(e|f), P(f|e) and P(e).

Shapes: S sentences, T source positions, U target positions, N tokens of all sentences, F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from dragoman_training.alignment.bitext import Numbers
from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.classics.smt.tuning import Candidates, count_matches, tune
from dragoman_training.data.batching import pad_ids
from dragoman_training.data.vocabulary import Tokenizers
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import Seq2Seq

START = {"direct": 1.0, "reverse": 0.3, "language_model": 0.1, "tokens": 0.1}
"""Weights before tuning, of log P(e|f), log P(f|e), log P(e) and the number of tokens of e."""
FEATURES = tuple(START)
NUM_STARTS = 10
BATCH_TOKENS = 4000


@dataclass(frozen=True)
class Listed:
    """A translation of a source, and its features."""

    text: str
    features_F: NDArray[np.float64]
    """The features in the order of `FEATURES`; 0 for a member that there is not."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Members:
    """Checkpoints of one pair of languages."""

    direct: Checkpoint
    reverse: Checkpoint | None
    language_model: Checkpoint | None

    def __post_init__(self) -> None:
        data = self.direct.recipe.data
        if not data.has_source:
            raise ValueError("the model is a language model, and translates nothing: give another")
        if self.reverse is None and self.language_model is None:
            raise ValueError("nothing to rescore by: give --reverse, --language-model or both")
        if self.reverse is not None:
            other = self.reverse.recipe.data
            if (other.source_language, other.target_language) != (data.target_language, data.source_language):
                wanted = f"it has to be the reverse of {data.direction}"
                raise ValueError(f"--reverse translates {other.direction}: {wanted}")
        if self.language_model is not None:
            other = self.language_model.recipe.data
            if other.has_source or other.target_language != data.target_language:
                raise ValueError(
                    f"--language-model is no language model of {data.target_language}, the language that the "
                    "model translates to"
                )

    @classmethod
    def load(
        cls, direct: Path, reverse: Path | None, language_model: Path | None, device: torch.device
    ) -> "Members":
        """Raises ValueError where they do not belong together."""
        others = [load_checkpoint(path) if path else None for path in (reverse, language_model)]
        members = cls(direct=load_checkpoint(direct), reverse=others[0], language_model=others[1])
        for checkpoint in filter(None, (members.direct, *others)):
            checkpoint.model.to(device)
        return members

    def translations(
        self, sources: Sequence[str], num_best: int, length_penalty: float | None
    ) -> list[list[Listed]]:
        """The translations of each source that a beam as wide finds, no text twice, the search's best first.

        A source of which normalization leaves nothing has one, the empty text.
        """
        direct = self.direct
        source, target = direct.source_tokenizer, direct.target_tokenizer
        decoding = replace(direct.recipe.decoding, beam_size=num_best)
        if length_penalty is not None:
            decoding = replace(decoding, length_penalty=length_penalty)
        translator = Translator(direct.model, source, target, decoding)
        encoded = translator.encode(sources)
        # Of a source that is cut the others, too, are asked of what is left: no translation saw the rest.
        kept = [[token for token in ids if token != source.eos_id] for ids in encoded]
        both = zip(sources, map(len, source.encode_ids(sources)), kept, strict=True)
        read = [text if size <= len(own) else source.decode_text(own) for text, size, own in both]
        # By number and text the log-probability, and tokens with the end.
        own: dict[tuple[int, str], tuple[float, int]] = {}
        for number, hypotheses in enumerate(translator.search_lists(encoded)):
            for one in hypotheses:
                text = target.decode_text(one.tokens)
                own.setdefault((number, text), (one.log_probability, len(one.tokens) + 1))
        others_2 = self._others([read[number] for number, _ in own], [text for _, text in own])
        lists: list[list[Listed]] = [[] for _ in sources]
        for (number, text), (log, size), others in zip(own, own.values(), others_2.T.tolist(), strict=True):
            lists[number].append(Listed(text, np.array([log, *others, size], np.float64)))
        return [found or [Listed("", np.zeros(len(FEATURES)))] for found in lists]

    def _others(self, sources: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
        """What the reverse and the language model say of each text, 0 where there is none. [2, texts]"""
        result = np.zeros((2, len(texts)))
        for row, member in enumerate((self.reverse, self.language_model)):
            if member is not None:
                reader, writer = member.source_tokenizer, member.target_tokenizer
                sides = (texts, sources) if member is self.reverse else ((), texts)
                ids = [reader.encode_ids(sides[0]) or [[]] * len(texts), writer.encode_ids(sides[1])]
                result[row] = log_probabilities(member.model, (reader, writer), *ids)
        return result


@torch.inference_mode()
def log_probabilities(
    model: Seq2Seq, tokenizers: Tokenizers, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> NDArray[np.float64]:
    """log P(target | source) of pairs of ids without eos; a language model's sources are empty. [S]

    As the search has them: pieces that are never produced have no share.
    """
    source, target = tokenizers
    device = next(model.parameters()).device
    result = np.zeros(len(sources))
    order = sorted(range(len(sources)), key=lambda number: (len(sources[number]), len(targets[number])))
    while order:
        longest = max(len(sources[order[-1]]), len(targets[order[-1]])) + 1
        numbers = order[-max(1, BATCH_TOKENS // longest) :]
        del order[-len(numbers) :]
        source_ST = pad_ids([[*sources[number], source.eos_id] for number in numbers], source.pad_id)
        length_S = torch.tensor([len(sources[number]) + 1 for number in numbers])
        input_SU = pad_ids([[target.bos_id, *targets[number]] for number in numbers], target.pad_id)
        output_SU = pad_ids([[*targets[number], target.eos_id] for number in numbers], target.pad_id)
        features_SUD = model(source_ST.to(device), length_S.to(device), input_SU.to(device))
        counted_SU = (output_SU != target.pad_id).to(device)
        logits_NV = model.output(features_SUD[counted_SU])
        log_N = functional.cross_entropy(logits_NV, output_SU.to(device)[counted_SU], reduction="none")
        row_N = counted_SU.nonzero()[:, 0].cpu().numpy()
        result[numbers] = -np.bincount(row_N, log_N.cpu().double().numpy(), minlength=len(numbers))
    return result


def tune_weights(lists: Sequence[Sequence[Listed]], references: Sequence[str], *, seed: int) -> Numbers:
    """The weights by which the translations chosen have the best BLEU (Och 2003). [F]

    A member that says nothing has the weight 0.
    """
    features = [np.stack([one.features_F for one in own]) for own in lists]
    both = zip(lists, references, strict=True)
    counts = [count_matches([one.text for one in own], reference) for own, reference in both]
    candidates = Candidates.of(features, counts)
    used_F = candidates.features_NF.any(axis=0)
    start_F = np.array([START[name] for name in FEATURES]) * used_F
    weights_F, _ = tune(candidates, start_F, num_starts=NUM_STARTS, random=np.random.default_rng(seed))
    return weights_F * used_F + 0.0  # No -0.


def choose(lists: Sequence[Sequence[Listed]], weights_F: Numbers) -> list[str]:
    """The translation of each source with the largest weighted sum."""
    return [max(own, key=lambda one: float(one.features_F @ weights_F)).text for own in lists]
