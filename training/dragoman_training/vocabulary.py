"""Sentencepiece vocabularies, trained on the corpus."""

import io
from collections.abc import Iterable

import sentencepiece

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_training.corpus import Corpus
from dragoman_training.recipe import VocabularyConfig


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


def _train(sentences: Iterable[str], config: VocabularyConfig) -> Tokenizer:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=config.size,
            model_type=config.model_type,
            character_coverage=config.character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise VocabularyError(
            f"vocabulary.size is {config.size}, which the corpus does not allow: {error}"
        ) from error
    return Tokenizer(model.getvalue())
