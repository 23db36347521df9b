"""Sentencepiece vocabularies, trained on the corpus."""

import io
import re
from collections.abc import Sequence

import sentencepiece
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data.corpus import Corpus
from dragoman_training.recipe.data import VocabularyConfig

MIN_MAX_SENTENCE_BYTES = 10
"""The least that sentencepiece takes for `max_sentence_length`."""


class VocabularyError(ValueError):
    """A vocabulary that can't be trained on the corpus."""


def train_tokenizers(corpus: Corpus, config: VocabularyConfig) -> tuple[Tokenizer, Tokenizer]:
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
