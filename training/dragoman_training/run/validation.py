"""How good a model is on held-out pairs, by perplexity and BLEU; and how far training has come by that."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import sacrebleu
import torch
from dragoman_bundle.languages import writes_spaces

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus, CorpusError
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import Seq2Seq
from dragoman_training.run.objective import linear_cross_entropy

MANY_DIGITS = 1e6
"""A perplexity from here on is no measure any more: only how far astray the model is."""


@dataclass(frozen=True, kw_only=True)
class Validation:
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
    bleu = sacrebleu.corpus_bleu(translations, [corpus.targets], tokenize=bleu_tokenizer(target_language))
    sample = corpus.sources[middle], translations[middle], corpus.targets[middle]
    return Validation(perplexity=perplexity(model, pairs), bleu=bleu.score, sample=sample)


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
        table_VD, bias_V = model.output.embedding.weight, model.output.bias
        target_N = batch.target_output_SU[counted_SU]
        _, plain = linear_cross_entropy(features_SUD[counted_SU], table_VD, bias_V, target_N)
        loss += float(plain)
        num_tokens += int(counted_SU.sum())
    return math.exp(min(loss / num_tokens, 700.0))


def show_perplexity(value: float) -> str:
    """A perplexity for people, in a few characters however large it is, or NaN."""
    return f"{value:.2f}" if value < MANY_DIGITS else f"{value:.1e}"


LEAST_BLEU = 1.0
"""BLEU below this is noise; perplexity tells the better model there, as it does between equals."""


@dataclasses.dataclass(kw_only=True)
class Progress:
    """All that a resumed run must know beside tensors."""

    step: int = 0
    epoch: int = 0
    """Passes over the corpus that are complete."""
    batch: int = 0
    """Batches done of the pass under way; a step takes several where gradients are accumulated."""
    seconds: float = 0.0
    """Time spent training, validation included."""
    best_bleu: float = -1.0
    """BLEU of the best validation so far; -1 before one, and of a language model."""
    best_perplexity: float | None = None
    """Perplexity of the best validation so far."""
    best_step: int | None = None
    """The step of the best validation so far; None before one, and where a checkpoint does not say."""
    stale: int = 0
    """Validations since then."""
    loss_scale: float | None = None
    """What the loss is multiplied by in fp16."""
    loss_scale_age: int = 0
    """Steps since that last changed."""
    validations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Step, seconds, perplexity and BLEU of each; a language model's BLEU is None."""
    averaged: list[int] = dataclasses.field(default_factory=list)
    """Steps of the checkpoints that `dragoman average` made this one of; empty for one that was trained."""
    processes: int | None = None
    """Processes that train together; None where a checkpoint does not say."""
    data_folder: str | None = None
    """Where the recipe's relative paths begin, as a full path; None where a checkpoint does not say."""
    num_pairs: int | None = None
    """Training pairs, without those left out; None where a checkpoint does not say."""
    left_out: dict[str, int] = dataclasses.field(default_factory=dict)
    """How many training pairs were left out, by reason."""
    corpus: str | None = None
    """What `Corpus.fingerprint` says of the training pairs; None where a checkpoint does not."""
    valid_corpus: str | None = None
    """The same of the validation pairs."""
    precision: str | None = None
    """What "auto" came to, as any other `training.precision`; None where a checkpoint does not say."""
    begun_with: list[dict[str, str]] = dataclasses.field(default_factory=list)
    """What `provenances` says of the checkpoint that it was begun with; empty where there was none."""
    device: str | None = None
    """Where it trains: "cpu" or "cuda"; None where a checkpoint does not say."""
    changed: bool = False
    """Whether it went on in another way than it was begun, so that no run in one stretch comes to this."""

    def take_in(self, result: Validation, measure: Literal["bleu", "loss"]) -> bool:
        """Takes in a validation at the present step; returns whether it is the best so far."""
        measured = {"perplexity": result.perplexity, "bleu": result.bleu}
        self.validations.append({"step": self.step, "seconds": round(self.seconds, 1), **measured})
        lowest = math.inf if self.best_perplexity is None else self.best_perplexity
        better = result.perplexity < lowest
        if measure == "bleu":
            assert result.bleu is not None
            says_something = max(result.bleu, self.best_bleu) >= LEAST_BLEU
            if says_something and result.bleu != self.best_bleu:
                better = result.bleu > self.best_bleu
        self.stale = 0 if better else self.stale + 1
        if better:
            self.best_bleu = -1.0 if result.bleu is None else result.bleu
            self.best_perplexity = result.perplexity
            self.best_step = self.step
        return better
