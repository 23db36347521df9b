"""Sentencepiece vocabularies, trained on the corpus, and segmentations drawn by them from a seeded generator.

Owns the draws, which are the same in every process, where sentencepiece's own differ whatever the seed;
models and normalization are sentencepiece's.
"""

import io
import math
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from typing import Literal

import sentencepiece
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data.corpus import Corpus
from dragoman_training.recipe.data import SubwordSamplingConfig, VocabularyConfig

Tokenizers = tuple[Tokenizer, Tokenizer]
"""The tokenizers of source and target; one object twice where the vocabulary is shared."""
MIN_MAX_SENTENCE_BYTES = 10
"""The least that sentencepiece takes for `max_sentence_length`."""


class VocabularyError(ValueError):
    """A vocabulary that can't be trained on the corpus."""


def train_tokenizers(corpus: Corpus, config: VocabularyConfig) -> Tokenizers:
    """Source and target tokenizer; the same object where the vocabulary is shared.

    Raises VocabularyError where the corpus is too small for the vocabulary's size.
    """
    if config.shared:
        shared = _train([*corpus.sources, *corpus.targets], config)
        return shared, shared
    return _train(corpus.sources, config), _train(corpus.targets, config)


def _train(sentences: Sequence[str], config: VocabularyConfig) -> Tokenizer:
    model = io.BytesIO()
    # It would leave out what is longer, without a word.
    longest = max((len(sentence.encode()) for sentence in sentences), default=0)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=filter(None, sentences),
            model_writer=model,
            vocab_size=config.size,
            model_type=config.model_type,
            character_coverage=config.character_coverage,
            normalization_rule_name=config.normalization,
            user_defined_symbols=list(config.tags),
            max_sentence_length=max(longest, MIN_MAX_SENTENCE_BYTES),
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise VocabularyError(_refusal(config.size, str(error))) from error
    return Tokenizer(model.getvalue())


def _refusal(size: int, said: str) -> str:
    """What sentencepiece said, as a person needs it: the key, the value, and what is possible."""
    if most := re.search(r"value <= (\d+)", said):
        return (
            f"vocabulary.size is {size}, but the corpus allows at most {most[1]} pieces: "
            f"set vocabulary.size to {most[1]} or less, or train on more text"
        )
    if least := re.search(r"smaller than required_chars\. \d+ vs (\d+)", said):
        return (
            f"vocabulary.size is {size}, but the corpus' characters alone need {least[1]} pieces: raise "
            "vocabulary.size above that, or lower vocabulary.character_coverage"
        )
    return f"vocabulary.size is {size}, which the corpus does not allow: {said}"


MAX_LATTICES = 20_000
"""Words whose lattices are kept: a corpus has its frequent words again and again."""
UNKNOWN_PENALTY = 10.0
"""The distance of an unknown character's score below the lowest of a piece, as in sentencepiece."""


class SubwordSampler(ABC):
    """Draws segmentations by one sentencepiece model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
        self._unk_id = tokenizer.unk_id

    @abstractmethod
    def sample(self, text: str, generator: random.Random) -> list[int]:
        """Ids of a segmentation of the text."""


class NbestSampler(SubwordSampler):
    """One of the unigram model's best segmentations, by their probabilities to a power (Kudo 2018, 3.3)."""

    def __init__(self, tokenizer: Tokenizer, *, alpha: float, nbest_size: int) -> None:
        super().__init__(tokenizer)
        self._alpha, self._nbest_size = alpha, nbest_size
        self._scores = [self._processor.get_score(id_) for id_ in range(tokenizer.vocabulary_size)]

    def sample(self, text: str, generator: random.Random) -> list[int]:
        # Unknown characters are the same in all of a text's segmentations: their score changes nothing.
        found: list[list[int]] = self._processor.nbest_encode(text, nbest_size=self._nbest_size, out_type=int)
        scores = [self._alpha * sum(map(self._scores.__getitem__, ids)) for ids in found]
        highest = max(scores)
        return generator.choices(found, [math.exp(score - highest) for score in scores])[0]


class WordSampler(SubwordSampler):
    """A segmentation drawn word by word: no piece of a vocabulary trained here reaches over a space."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        processor = self._processor
        tests = processor.is_control, processor.is_unknown, processor.is_unused
        ids = [id_ for id_ in range(tokenizer.vocabulary_size) if not any(is_it(id_) for is_it in tests)]
        self._id_of = {processor.id_to_piece(id_): id_ for id_ in ids}
        self._score_of = {processor.id_to_piece(id_): processor.get_score(id_) for id_ in ids}

    def sample(self, text: str, generator: random.Random) -> list[int]:
        words = re.findall("▁[^▁]*|[^▁]+", self._processor.normalize(text))
        ids = [id_ for word in words for id_ in self._sample_word(word, generator)]
        # Unknown characters in a row are one token, as sentencepiece has it.
        return [id_ for id_, run in groupby(ids) for _ in ([id_] if id_ == self._unk_id else run)]

    @abstractmethod
    def _sample_word(self, word: str, generator: random.Random) -> Sequence[int]: ...


class LatticeSampler(WordSampler):
    """Any segmentation, by the unigram model's probabilities to a power (Kudo 2018, 3.3, l infinite).

    It is drawn by forward filtering and backward sampling.
    """

    def __init__(self, tokenizer: Tokenizer, *, alpha: float) -> None:
        super().__init__(tokenizer)
        self._alpha = alpha
        self._longest = max(map(len, self._id_of))
        self._unknown_score = min(self._score_of.values()) - UNKNOWN_PENALTY
        self._lattice = lru_cache(MAX_LATTICES)(self._filter)

    def _sample_word(self, word: str, generator: random.Random) -> Sequence[int]:
        lattice, end, ids = self._lattice(word), len(word), []
        while end:
            starts, piece_ids, weights = lattice[end]
            (number,) = generator.choices(range(len(starts)), cum_weights=weights)
            ids.append(piece_ids[number])
            end = starts[number]
        return ids[::-1]

    def _filter(self, word: str) -> list[tuple[list[int], list[int], list[float]]]:
        """The pieces up to each end in the word: their starts, ids, and cumulative weights.

        A piece's weight is that of all segmentations up to there that end with it.
        """
        lattice: list[tuple[list[int], list[int], list[float]]] = [([], [], [])]
        log_sums = [0.0]
        for end in range(1, len(word) + 1):
            starts, ids, logs = [], [], []
            for start in range(max(0, end - self._longest), end):
                piece = word[start:end]
                if piece in self._id_of or start == end - 1:
                    starts.append(start)
                    ids.append(self._id_of.get(piece, self._unk_id))
                    score = self._score_of.get(piece, self._unknown_score)
                    logs.append(log_sums[start] + self._alpha * score)
            largest = max(logs)
            weights = list(accumulate(math.exp(log - largest) for log in logs))
            lattice.append((starts, ids, weights))
            log_sums.append(largest + math.log(weights[-1]))
        return lattice


class DropoutSampler(WordSampler):
    """BPE that leaves merges out at random, anew at each step (Provilkov et al. 2020, algorithm 1)."""

    def __init__(self, tokenizer: Tokenizer, *, probability: float) -> None:
        super().__init__(tokenizer)
        self._probability = probability

    def _sample_word(self, word: str, generator: random.Random) -> Sequence[int]:
        pieces = list(word)
        while merges := [
            (-self._score_of[left + right], index)
            for index, (left, right) in enumerate(pairwise(pieces))
            if left + right in self._score_of and generator.random() >= self._probability
        ]:
            _, index = min(merges)
            pieces[index : index + 2] = ["".join(pieces[index : index + 2])]
        return [self._id_of.get(piece, self._unk_id) for piece in pieces]


def make_samplers(
    tokenizers: Tokenizers, config: SubwordSamplingConfig, model_type: Literal["unigram", "bpe"]
) -> tuple[SubwordSampler | None, SubwordSampler | None]:
    """The sampler of either side for vocabularies of that type; None for a side that is not sampled."""

    def make(tokenizer: Tokenizer) -> SubwordSampler:
        if model_type == "bpe":
            return DropoutSampler(tokenizer, probability=config.alpha)
        if config.nbest_size == -1:
            return LatticeSampler(tokenizer, alpha=config.alpha)
        return NbestSampler(tokenizer, alpha=config.alpha, nbest_size=config.nbest_size)

    source, target = tokenizers
    return make(source) if config.source else None, make(target) if config.target else None
