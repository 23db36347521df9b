"""How good a model is on held-out pairs: perplexity, and BLEU by beam search."""

import math
from dataclasses import dataclass

import sacrebleu
import torch
from dragoman_bundle.languages import writes_spaces

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import Seq2Seq
from dragoman_training.run.loss import linear_cross_entropy

MANY_DIGITS = 1e6
"""A perplexity from here on is no measure any more: only how far astray the model is."""


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What one validation measured."""

    perplexity: float
    """Exponential of the mean negative log-likelihood of a reference token, eos included."""
    bleu: float | None
    """sacreBLEU (cased) of beam search, of characters where the target language writes no spaces and of 13a's
    words elsewhere. None for a language model."""
    sample: tuple[str, str, str] | None
    """A source, its translation and its reference."""


def validate(
    model: Seq2Seq, corpus: Corpus, pairs: Pairs, translator: Translator | None, *, target_language: str
) -> Validation:
    """Measures the model on a corpus; `pairs` is the same corpus tokenized.

    Without a translator, of a language model, only perplexity is measured.
    """
    if translator is None:
        return Validation(perplexity=perplexity(model, pairs), bleu=None, sample=None)
    translations = translator.translate(corpus.sources)
    middle = len(corpus) // 2
    return Validation(
        perplexity=perplexity(model, pairs),
        bleu=sacrebleu.corpus_bleu(
            translations, [corpus.targets], tokenize=bleu_tokenizer(target_language)
        ).score,
        sample=(corpus.sources[middle], translations[middle], corpus.targets[middle]),
    )


def bleu_tokenizer(target_language: str) -> str:
    """sacreBLEU's name for what its n-grams are of: characters where the language writes no spaces."""
    return "13a" if writes_spaces(target_language) else "char"


@torch.inference_mode()
def perplexity(model: Seq2Seq, pairs: Pairs, *, batch_tokens: int = 4000) -> float:
    """Perplexity per target token under teacher forcing, in float32.

    Raises CorpusError where there is no pair: normalization left nothing of any.
    """
    if not len(pairs):
        raise CorpusError("the vocabulary's normalization leaves nothing of any line to measure")
    model.eval()
    device = next(model.parameters()).device
    loss, num_tokens = 0.0, 0
    for numbers in pairs.plan(batch_tokens, seed=None):
        batch = pairs.batch(numbers).to(device)
        features_SUD = model(batch.source_ST, batch.source_length_S, batch.target_input_SU)
        counted_SU = batch.counted
        _, plain = linear_cross_entropy(
            features_SUD[counted_SU],
            model.output.embedding.weight,
            model.output.bias,
            batch.target_output_SU[counted_SU],
        )
        loss += float(plain)
        num_tokens += int(counted_SU.sum())
    return math.exp(min(loss / num_tokens, 700.0))


def show_perplexity(value: float) -> str:
    """A perplexity for people, in a few characters however large it is, or NaN."""
    return f"{value:.2f}" if value < MANY_DIGITS else f"{value:.1e}"
