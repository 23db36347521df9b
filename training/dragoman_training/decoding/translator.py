"""Whole sentences through a PyTorch model: tokenize, search, detokenize."""

import warnings
from collections.abc import Sequence

from dragoman_bundle.search import Hypothesis, beam_search
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.decoding.stepper import TorchStepper
from dragoman_training.models import Seq2Seq
from dragoman_training.recipe.settings import DecodingConfig

BATCH_ROWS = 320
_NOTHING = Hypothesis(tokens=(), score=0.0, log_probability=0.0, ended=True)
"""The translation of a source of which normalization leaves nothing."""


class Translator:
    """Translates sentences in batches of similar length."""

    def __init__(
        self,
        model: Seq2Seq,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig,
    ) -> None:
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._decoding = decoding
        self._stepper = TorchStepper(
            model,
            source_pad_id=source_tokenizer.pad_id,
            bos_id=target_tokenizer.bos_id,
            eos_id=target_tokenizer.eos_id,
        )

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """What the model reads of each sentence: its ids with eos; of one that is too long, its beginning.

        Warns of those.
        """
        limit = self._decoding.max_source_tokens - 1
        sources = self._source_tokenizer.encode_ids(sentences)
        if num_cut := sum(len(ids) > limit for ids in sources):
            warnings.warn(
                f"{num_cut} of {len(sources)} sentences have more tokens than the model takes, {limit}, and "
                "only their beginnings are translated here; a bundle splits them",
                stacklevel=2,
            )
        return [[*ids[:limit], self._source_tokenizer.eos_id] for ids in sources]

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypothesis]:
        """The best hypothesis of each source, given as ids with eos; an empty one where there is no other id.

        A model makes up a sentence where it is given none.
        """
        filled = [number for number, source in enumerate(sources) if len(source) > 1]
        by_length = sorted(filled, key=lambda number: len(sources[number]))
        found: dict[int, Hypothesis] = {}
        size = max(1, BATCH_ROWS // self._decoding.beam_size)
        for start in range(0, len(by_length), size):
            numbers = by_length[start : start + size]
            results = beam_search(self._stepper, [sources[number] for number in numbers], self._decoding)
            for number, hypotheses in zip(numbers, results, strict=True):
                found[number] = hypotheses[0]
        return [found.get(number, _NOTHING) for number in range(len(sources))]

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """The best translation of each sentence; of one that is too long, of its beginning."""
        found = self.search(self.encode(sentences))
        return [self._target_tokenizer.decode_text(hypothesis.tokens) for hypothesis in found]
