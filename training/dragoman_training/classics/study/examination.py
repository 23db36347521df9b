"""One checkpoint examined: it translates the test set, and says where it looked.

What is found are plain values that outlive the model.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman_training.alignment.head import ChosenHead, choose_head
from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.classics.study.inputs import StudySet, num_words
from dragoman_training.classics.study.scores import Scorer
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.decoding.forced_attention import ForcedAttention, attention_along, has_attention
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import BahdanauConfig, Luong, LuongConfig, Transformer
from dragoman_training.recipe.settings import Recipe

BLOCK_SENTENCES = 64
"""Sentences translated at once: the step of the progress bar."""
NO_LIMIT = 100_000
"""Tokens that no text of a test set has: what a translation may have is by its source's length alone."""

Report = Callable[[int], None]
"""Called with the number of sentences that are done."""


class Example(NamedTuple):
    """One sentence as one model reads and translates it, ends included, and where it looked."""

    source_pieces: list[str]
    target_pieces: list[str]
    """A piece for each row of the attention."""
    attention: ForcedAttention


class Sharpness(NamedTuple):
    """How a model's attention is spread, as means over all target pieces of the test set."""

    largest: float
    """Weight of the source piece that is looked at most."""
    entropy_bits: float
    """Entropy of the weights, scaled to add up to 1."""
    end_share: float
    """Weight on the end of the source sentence."""
    total: float
    """All weights together; below 1 only in local-p, whose Gaussian takes something away."""


@dataclass(frozen=True, kw_only=True)
class Centres:
    """What local-p predicted for every target piece of the test set but ends; positions count from 1."""

    target_position: NDArray[np.float32]
    """Place of the target piece in its translation."""
    source_length: NDArray[np.float32]
    """Pieces of its source, the end included."""
    predicted: NDArray[np.float32]
    """Centre of the window."""
    reach: int
    """Positions of the window to either side."""
    witness: str | None = None
    """The model whose attention the predictions are compared with; None where the study has none."""
    most_looked_at: NDArray[np.float32] | None = None
    """The source position with the witness's largest weight, of every target piece."""

    @property
    def monotonic(self) -> NDArray[np.float32]:
        """The centres that local-m would take (Luong et al. 2015, section 3.2)."""
        return np.minimum(self.target_position, self.source_length)

    def at_words(self, *values: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Where the witness looks and the values given, but of pieces for which it looks at the end."""
        assert self.most_looked_at is not None
        at_words = self.most_looked_at < self.source_length
        return [each[at_words] for each in (self.most_looked_at, *values)]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """One model's part in the study."""

    label: str
    """What the page calls it."""
    recipe: Recipe
    """How it was trained."""
    progress: dict[str, Any]
    """How far, and the validations on the way."""
    num_parameters: int
    vocabularies: tuple[bytes, bytes]
    """The source's tokenizer and the target's: perplexities are comparable where that is the same."""
    longest_trained: int | None
    """Words of the longest source that it was trained on; None where that can't be known."""
    tokens: tuple[tuple[int, ...], ...]
    """Its translations of the test set, in its order, as ids without eos."""
    translations: tuple[str, ...]
    """The same as text."""
    cased: Scorer
    """BLEU of its parts."""
    lower_cased: Scorer
    """The same without case."""
    head: ChosenHead | None
    """Of which head its attention is; None but of a Transformer."""
    sharpness: Sharpness | None
    """How its attention is spread; None without attention."""
    centres: Centres | None
    """What local-p predicted; None for other models."""
    examples: tuple[Example, ...]
    """The sentences of the heat maps."""


def examine(
    label: str,
    path: Path,
    test_set: StudySet,
    *,
    beam_size: int,
    length_penalty: float,
    recipe_folder: Path | None,
    device: torch.device,
    report: Report,
) -> Findings:
    """Translates the test set and looks at the attention along the model's own translations.

    The recipe's paths start at `recipe_folder`, or where they did in training. Raises CheckpointError or
    OSError.
    """
    checkpoint = load_checkpoint(path)
    model, source, target = (
        checkpoint.model.to(device),
        checkpoint.source_tokenizer,
        checkpoint.target_tokenizer,
    )
    head, longest_trained = _from_training(checkpoint, recipe_folder)
    if isinstance(model, Transformer) and head is not None:
        model.alignment_head = head.head
    decoding = dataclasses.replace(
        checkpoint.recipe.decoding,
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_source_tokens=NO_LIMIT,
        max_output_tokens=NO_LIMIT,
    )
    translator = Translator(model, source, target, decoding)
    sources = translator.encode(test_set.sources)
    attends = has_attention(model)
    tokens: dict[int, tuple[int, ...]] = {}
    attentions: dict[int, ForcedAttention] = {}
    by_length = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    for start in range(0, len(by_length), BLOCK_SENTENCES):
        numbers = by_length[start : start + BLOCK_SENTENCES]
        hypotheses = translator.search([sources[number] for number in numbers])
        tokens |= dict(zip(numbers, (hypothesis.tokens for hypothesis in hypotheses), strict=True))
        own = [number for number in numbers if number in test_set.own]
        if attends and own:
            forced = attention_along_tokens(checkpoint, [sources[n] for n in own], [tokens[n] for n in own])
            attentions |= dict(zip(own, forced, strict=True))
        report(len(tokens))
    if head is not None and head.of_input:
        attentions = {number: _of_read(attention) for number, attention in attentions.items()}
    in_order = [attentions[number] for number in sorted(attentions)]
    translations = tuple(target.decode(tokens[number]).text for number in range(len(sources)))
    cased, lower_cased = (
        Scorer(
            translations,
            test_set.references,
            lowercase=lowercase,
            target_language=checkpoint.recipe.data.target_language,
        )
        for lowercase in (False, True)
    )

    def example(number: int) -> Example:
        attention = attentions[number]
        said = [*tokens[number], target.eos_id][: len(attention.weights_UT)]
        return Example([*map(source.piece, sources[number])], [*map(target.piece, said)], attention)

    return Findings(
        label=label,
        recipe=checkpoint.recipe,
        progress=checkpoint.progress,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabularies=(source.model, target.model),
        longest_trained=longest_trained,
        tokens=tuple(tokens[number] for number in range(len(sources))),
        translations=translations,
        cased=cased,
        lower_cased=lower_cased,
        head=head,
        sharpness=sharpness_of(in_order) if attends else None,
        centres=centres_of(in_order, model.config.window) if isinstance(model, Luong) else None,
        examples=tuple(map(example, test_set.examples)) if attends else (),
    )


def attention_along_tokens(
    checkpoint: Checkpoint, sources: Sequence[Sequence[int]], tokens: Sequence[Sequence[int]]
) -> list[ForcedAttention]:
    """Where the model looks saying given translations and their ends; sources are ids with eos."""
    target = checkpoint.target_tokenizer
    return attention_along(
        checkpoint.model,
        sources,
        [[*translation, target.eos_id] for translation in tokens],
        pad_ids_of_sides=(checkpoint.source_tokenizer.pad_id, target.pad_id),
        bos_id=target.bos_id,
    )


def _of_read(attention: ForcedAttention) -> ForcedAttention:
    """Each token's weights are those of the step after: none of its end, but where there is nothing else."""
    return dataclasses.replace(attention, weights_UT=attention.weights_UT[len(attention.weights_UT) > 1 :])


def _from_training(
    checkpoint: Checkpoint, recipe_folder: Path | None
) -> tuple[ChosenHead | None, int | None]:
    """A Transformer's alignment head, and the words of the longest source that the model was trained on.

    The second is None where it can't be known.
    """
    model, recipe = checkpoint.model, checkpoint.recipe
    is_transformer = isinstance(model, Transformer)
    try:
        corpus = read_training_corpus(checkpoint, recipe_folder)
    except TrainingCorpusError as error:
        reason = f"the last layer's mean, since {error}"
        return ChosenHead(head=None, of_input=False, reason=reason) if is_transformer else None, None
    head = None
    if isinstance(model, Transformer):
        limit = recipe.decoding.max_source_tokens - 1  # Its end is a token too.
        tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
        head = choose_head(model, *tokenizers, corpus, max_tokens=limit)
    return head, None if recipe.training.start_from else max(map(num_words, corpus.sources))


def sharpness_of(attentions: Sequence[ForcedAttention]) -> Sharpness:
    """Means over all target pieces."""
    rows = []
    for attention in attentions:
        weights_UT = attention.weights_UT.astype(np.float64)
        total_U = weights_UT.sum(axis=1)
        share_UT = weights_UT / total_U[:, None]
        entropy_U = -(share_UT * np.log2(np.where(share_UT > 0, share_UT, 1.0))).sum(axis=1)
        rows.append((weights_UT.max(axis=1), entropy_U, weights_UT[:, -1], total_U))
    return Sharpness(*(float(np.concatenate(values).mean()) for values in zip(*rows, strict=True)))


def centres_of(attentions: Sequence[ForcedAttention], reach: int) -> Centres | None:
    """All predictions of a local-p model but those of ends, which come from no word; None of another."""
    rows = [
        (np.arange(1, len(centre_U)), np.full(len(centre_U) - 1, each.weights_UT.shape[1]), centre_U[:-1])
        for each in attentions
        if (centre_U := each.centre_U) is not None
    ]
    if not rows:
        return None
    target, length, predicted = (
        np.concatenate(column).astype(np.float32) for column in zip(*rows, strict=True)
    )
    return Centres(target_position=target, source_length=length, predicted=predicted, reach=reach)


def find_witness(local_p: Findings, findings: Sequence[Findings], test_set: StudySet) -> Findings | None:
    """The model that local-p's centres are compared with, as its own weights are its window's.

    Of the recurrent models with one global attention and local-p's vocabularies, the best by BLEU.
    """
    fitting = [
        finding
        for finding in findings
        if isinstance(config := finding.recipe.model, (BahdanauConfig, LuongConfig))
        and (isinstance(config, BahdanauConfig) or config.attention == "global")
        and finding.vocabularies == local_p.vocabularies
    ]
    return max(fitting, key=lambda finding: finding.cased.bleu(test_set.own), default=None)


def with_witness(
    local_p: Findings, label: str, path: Path, test_set: StudySet, *, device: torch.device, report: Report
) -> Findings:
    """Local-p's findings, with where the model of that label and file looks along its translations.

    Raises CheckpointError or OSError.
    """
    checkpoint = load_checkpoint(path)
    checkpoint.model.to(device)
    tokenizer = checkpoint.source_tokenizer
    sources = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_ids(test_set.sources)]
    most = []
    for start in range(0, len(test_set.own), BLOCK_SENTENCES):
        numbers = test_set.own[start : start + BLOCK_SENTENCES]
        own = [sources[n] for n in numbers], [local_p.tokens[n] for n in numbers]
        attentions = attention_along_tokens(checkpoint, *own)
        most += [attention.weights_UT[:-1].argmax(axis=1) + 1 for attention in attentions]
        report(start + len(numbers))
    assert local_p.centres is not None
    most_looked_at = np.concatenate(most).astype(np.float32)
    centres = dataclasses.replace(local_p.centres, witness=label, most_looked_at=most_looked_at)
    return dataclasses.replace(local_p, centres=centres)
