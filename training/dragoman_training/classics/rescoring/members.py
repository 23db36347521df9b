"""The models that judge a translation e of a source f: one says P(e|f), one P(f|e), one P(e)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.classics.rescoring.sentence_scores import log_probabilities
from dragoman_training.decoding.search import beam_search
from dragoman_training.decoding.stepper import TorchStepper
from dragoman_training.decoding.translator import BATCH_ROWS, Translator

FEATURES = ("direct", "reverse", "language_model", "tokens")
"""log P(e|f), log P(f|e), log P(e) and the number of tokens of e."""


@dataclass(frozen=True)
class Listed:
    """A translation of a source, and what the members say of it."""

    text: str
    features_F: NDArray[np.float64]
    """In the order of `FEATURES`; 0 for a member that there is not."""


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
                raise ValueError(
                    f"--reverse translates {other.direction}: it has to be the reverse of {data.direction}"
                )
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
        members = cls(
            direct=load_checkpoint(direct),
            reverse=load_checkpoint(reverse) if reverse else None,
            language_model=load_checkpoint(language_model) if language_model else None,
        )
        for checkpoint in (members.direct, members.reverse, members.language_model):
            if checkpoint:
                checkpoint.model.to(device)
        return members

    def translations(
        self, sources: Sequence[str], num_best: int, length_penalty: float | None
    ) -> list[list[Listed]]:
        """The translations of each source that a beam as wide finds, no text twice, the search's best first.

        A source of which normalization leaves nothing has one, the empty text.
        """
        direct = self.direct
        tokenizers = direct.source_tokenizer, direct.target_tokenizer
        decoding = replace(direct.recipe.decoding, beam_size=num_best)
        if length_penalty is not None:
            decoding = replace(decoding, length_penalty=length_penalty)
        encoded = Translator(direct.model, *tokenizers, decoding).encode(sources)
        # Of a source that is cut the others, too, are asked of what is left: no translation saw the rest.
        kept = [[token for token in ids if token != tokenizers[0].eos_id] for ids in encoded]
        whole = tokenizers[0].encode_ids(sources)
        read = [
            source if len(ids) <= len(own) else tokenizers[0].decode_text(own)
            for source, ids, own in zip(sources, whole, kept, strict=True)
        ]
        stepper = TorchStepper(
            direct.model,
            source_pad_id=tokenizers[0].pad_id,
            bos_id=tokenizers[1].bos_id,
            eos_id=tokenizers[1].eos_id,
        )
        lists: list[list[Listed]] = [[Listed("", np.zeros(len(FEATURES)))] for _ in sources]
        filled = sorted(
            (number for number, ids in enumerate(encoded) if len(ids) > 1), key=lambda n: len(encoded[n])
        )
        size = max(1, BATCH_ROWS // num_best)
        for start in range(0, len(filled), size):
            numbers = filled[start : start + size]
            found = beam_search(stepper, [encoded[number] for number in numbers], decoding)
            texts: list[dict[str, tuple[float, int]]] = []
            for hypotheses in found:
                own: dict[str, tuple[float, int]] = {}
                for one in hypotheses:
                    text = tokenizers[1].decode_text(one.tokens)
                    own.setdefault(text, (one.log_probability, len(one.tokens) + 1))
                texts.append(own)
            self._judge(numbers, read, texts, lists)
        return lists

    def _judge(
        self,
        numbers: Sequence[int],
        sources: Sequence[str],
        texts: Sequence[dict[str, tuple[float, int]]],
        lists: list[list[Listed]],
    ) -> None:
        """Asks the other members of some sources' translations, `sources` as far as they were read."""
        flat = [(sources[number], text) for number, own in zip(numbers, texts, strict=True) for text in own]
        others = np.zeros((2, len(flat)))
        if self.reverse is not None:
            reader, writer = self.reverse.source_tokenizer, self.reverse.target_tokenizer
            others[0] = log_probabilities(
                self.reverse.model,
                (reader, writer),
                reader.encode_ids([text for _, text in flat]),
                writer.encode_ids([source for source, _ in flat]),
            )
        if self.language_model is not None:
            writer = self.language_model.target_tokenizer
            others[1] = log_probabilities(
                self.language_model.model,
                (self.language_model.source_tokenizer, writer),
                [[]] * len(flat),
                writer.encode_ids([text for _, text in flat]),
            )
        place = 0
        for number, own in zip(numbers, texts, strict=True):
            lists[number] = []
            for text, (log_probability, num_tokens) in own.items():
                features = [log_probability, *others[:, place].tolist(), num_tokens]
                lists[number].append(Listed(text, np.array(features, np.float64)))
                place += 1
