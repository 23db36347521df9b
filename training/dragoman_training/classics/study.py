"""What trained models do with one test set: how they translate it, and where each looks while it does.

What is found are plain values that outlive the model.

Shapes: U target pieces, T source pieces.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sacrebleu
import torch
from numpy.typing import NDArray

from dragoman_training.alignment.head import ChosenHead, choose_head
from dragoman_training.checkpoint import Checkpoint, load_checkpoint, read_checkpoint
from dragoman_training.data.files import read_pairs
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.decoding.forced_attention import ForcedAttention, attention_along, has_attention
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import Luong, Transformer
from dragoman_training.recipe.settings import Recipe
from dragoman_training.run.validation import bleu_tokenizer

JOIN = 4
"""Consecutive sentences of which a long one is made."""
BUCKET_WORDS, BUCKET_SENTENCES = 5, 30
"""Source lengths in a bucket, and its fewest sentences: with fewer it is one with its neighbour."""
BLOCK_SENTENCES = 64
"""Sentences translated at once: the step of the progress bar."""
NO_LIMIT = 100_000
"""Tokens that no text of a test set has: what a translation may have is by its source's length alone."""

Report = Callable[[int], None]
"""Called with the number of sentences that are done."""


@dataclass(frozen=True, kw_only=True)
class StudySet:
    """What every model of the study translates."""

    sources: tuple[str, ...]
    """The test set's own sentences, and behind them long ones, each of several of these joined."""
    references: tuple[str, ...]
    """Their translations, joined alike."""
    num_sentences: int
    """How many are the test set's own."""
    examples: tuple[int, ...]
    """Places of the sentences that heat maps are drawn of."""

    @property
    def own(self) -> range:
        """Places of the test set's own sentences."""
        return range(self.num_sentences)


class Bucket(NamedTuple):
    """Sentences whose sources are about as long."""

    label: str
    """Their words."""
    numbers: Sequence[int]
    """Their places in the test set, ascending."""


def read_study_set(source: Path, reference: Path, sentences: str | None) -> StudySet:
    """The test set, its examples, and sentences joined of JOIN consecutive ones.

    Raises ValueError for files that don't fit, or lines not in them.
    """
    pairs = list(read_pairs(source, reference))
    for number, pair in enumerate(pairs, start=1):
        for path, line in zip((source, reference), pair, strict=True):
            if not line.strip():
                raise ValueError(f"{path}, line {number}: is empty; leave the pair out")
    if not pairs:
        raise ValueError(f"{source} is empty")
    sources, references = zip(*pairs, strict=True)
    if sentences is None:
        by_length = sorted(range(len(sources)), key=lambda number: _num_words(sources[number]))
        examples = dict.fromkeys(by_length[len(sources) * share // 100] for share in (20, 50, 80))
    else:
        examples = dict.fromkeys(_line(text, len(sources)) - 1 for text in sentences.split(","))
    return StudySet(
        sources=(*sources, *_joined(sources)),
        references=(*references, *_joined(references)),
        num_sentences=len(sources),
        examples=tuple(examples),
    )


def _joined(sentences: Sequence[str]) -> list[str]:
    """Each JOIN consecutive sentences as one; what is left over at the end is in none.

    Commas and small letters stand where one ends and the next begins: after a full stop a model that has
    learnt from single sentences would end its translation.
    """
    result = []
    for end in range(JOIN, len(sentences) + 1, JOIN):
        first, *following = sentences[end - JOIN : end]
        *beginning, last = [first, *(other[:1].lower() + other[1:] for other in following)]
        result.append(", ".join([*(sentence.rstrip(" .!?") for sentence in beginning), last]))
    return result


def _num_words(sentence: str) -> int:
    """Words of a sentence: what white space separates. The same for every model, whatever its pieces."""
    return len(sentence.split())


def _line(text: str, num_lines: int) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= num_lines:
        raise ValueError(f'--sentences has "{text}", but must be lines from 1 to {num_lines}, such as 3,17')
    return int(text)


def cut_buckets(test_set: StudySet) -> list[Bucket]:
    """Buckets of BUCKET_WORDS lengths each, such as 1 to 5, 6 to 10, ..., and then that of joined sentences.

    Each of the test set's own is in exactly one. A bucket of fewer than BUCKET_SENTENCES is merged with the
    next longer one, the last with the one before it.
    """
    by_length: dict[int, list[int]] = {}
    for number in test_set.own:
        by_length.setdefault((_num_words(test_set.sources[number]) - 1) // BUCKET_WORDS, []).append(number)
    groups: list[list[int]] = []
    for length in sorted(by_length):
        if groups and len(groups[-1]) < BUCKET_SENTENCES:
            groups[-1] += by_length[length]
        else:
            groups.append(by_length[length])
    if len(groups) > 1 and len(groups[-1]) < BUCKET_SENTENCES:
        groups[-2:] = [groups[-2] + groups[-1]]
    buckets = [Bucket(_label(test_set, group), sorted(group)) for group in groups]
    joined = range(test_set.num_sentences, len(test_set.sources))
    return [*buckets, *([Bucket(f"{_label(test_set, joined)}, joined", joined)] if joined else [])]


def _label(test_set: StudySet, numbers: Sequence[int]) -> str:
    lengths = [_num_words(test_set.sources[number]) for number in numbers]
    least, most = min(lengths), max(lengths)
    return f"{least}" if least == most else f"{least} to {most}"


def labelled_checkpoints(checkpoints: tuple[str, ...]) -> dict[str, Path]:
    """Labels and files. Raises ValueError where two models have one label, or a file is not there."""
    labelled: dict[str, Path] = {}
    directions: dict[str, Path] = {}
    for argument in checkpoints:
        label, equals, name = argument.partition("=")
        path = Path(name) if equals and not Path(argument).exists() else Path(argument)
        _, recipe, _ = read_checkpoint(path)
        if not recipe.data.has_source:
            raise ValueError(f"{path} is a language model and translates nothing: leave it out")
        if path == Path(argument):
            label = recipe.name
        if label in labelled:
            others = f"{labelled[label]} and {path}"
            raise ValueError(f'two models are called "{label}", {others}: give LABEL={path}')
        labelled[label] = path
        directions[recipe.data.direction] = path
    if len(directions) > 1:
        (first, one), (second, other), *_ = directions.items()
        both = f"{one} translates {first}, but {other} {second}"
        raise ValueError(f"{both}: a study is of one pair of languages")
    return labelled


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


@dataclass(frozen=True, kw_only=True)
class Findings:
    """One model's part in the study."""

    label: str
    """What the page calls it."""
    recipe: Recipe
    progress: dict[str, Any]
    """How far, and the validations on the way."""
    num_parameters: int
    target_vocabulary: bytes
    """The target's tokenizer: perplexities are comparable where that is the same."""
    tokens: tuple[tuple[int, ...], ...]
    """Its translations of the test set, in its order, as ids without eos."""
    translations: tuple[str, ...]
    """The same as text."""
    head: ChosenHead | None
    """The head whose attention it is; None but of a Transformer."""
    sharpness: Sharpness | None
    """How its attention is spread; None without attention."""
    centres: Centres | None
    """What local-p predicted; None for other models."""
    examples: tuple[Example, ...]

    def bleu(self, test_set: StudySet, numbers: Iterable[int]) -> float:
        """The BLEU of some sentences, by characters or words as validation has it."""
        pairs = [(self.translations[number], test_set.references[number]) for number in numbers]
        translations, references = zip(*pairs, strict=True)
        words = bleu_tokenizer(self.recipe.data.target_language)
        return sacrebleu.corpus_bleu(translations, [references], tokenize=words).score


def examine(
    label: str,
    path: Path,
    test_set: StudySet,
    *,
    beam_size: int,
    recipe_folder: Path | None,
    device: torch.device,
    report: Report,
) -> Findings:
    """Translates the test set and looks at the attention along the model's own translations.

    The recipe's paths start at `recipe_folder`, or where they did in training. Raises CheckpointError or
    OSError.
    """
    checkpoint = load_checkpoint(path)
    model, source, target = checkpoint.model, checkpoint.source_tokenizer, checkpoint.target_tokenizer
    model.to(device)
    head = None
    if isinstance(model, Transformer):
        head = _choose_head(model, checkpoint, recipe_folder)
        model.alignment_head = head.head
    decoding = dataclasses.replace(checkpoint.recipe.decoding, beam_size=beam_size, length_penalty=1.0)
    decoding = dataclasses.replace(decoding, max_source_tokens=NO_LIMIT, max_output_tokens=NO_LIMIT)
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
            said = [[*tokens[number], target.eos_id] for number in own]
            forced = attention_along(model, (source, target), [sources[number] for number in own], said)
            attentions |= dict(zip(own, forced, strict=True))
        report(len(tokens))
    if head is not None and head.of_input:
        # Each token's weights are those of the step after: none of its end, but where there is nothing else.
        attentions = {
            number: dataclasses.replace(own, weights_UT=own.weights_UT[len(own.weights_UT) > 1 :])
            for number, own in attentions.items()
        }
    in_order = [attentions[number] for number in sorted(attentions)]

    def example(number: int) -> Example:
        attention = attentions[number]
        said = [*tokens[number], target.eos_id][: len(attention.weights_UT)]
        return Example([*map(source.piece, sources[number])], [*map(target.piece, said)], attention)

    return Findings(
        label=label,
        recipe=checkpoint.recipe,
        progress=checkpoint.progress,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        target_vocabulary=target.model,
        tokens=tuple(tokens[number] for number in range(len(sources))),
        translations=tuple(target.decode(tokens[number]).text for number in range(len(sources))),
        head=head,
        sharpness=sharpness_of(in_order) if attends else None,
        centres=centres_of(in_order) if isinstance(model, Luong) else None,
        examples=tuple(map(example, test_set.examples)) if attends else (),
    )


def _choose_head(model: Transformer, checkpoint: Checkpoint, recipe_folder: Path | None) -> ChosenHead:
    """A Transformer's alignment head."""
    try:
        corpus = read_training_corpus(checkpoint, recipe_folder)
    except TrainingCorpusError as error:
        return ChosenHead(head=None, of_input=False, reason=f"the last layer's mean, since {error}")
    limit = checkpoint.recipe.decoding.max_source_tokens - 1  # Its end is a token too.
    tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
    return choose_head(model, *tokenizers, corpus, max_tokens=limit)


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


def centres_of(attentions: Sequence[ForcedAttention]) -> Centres | None:
    """All predictions of a local-p model but those of ends, which come from no word; None of another."""
    rows = [
        (np.arange(1, len(centre_U)), np.full(len(centre_U) - 1, each.weights_UT.shape[1]), centre_U[:-1])
        for each in attentions
        if (centre_U := each.centre_U) is not None
    ]
    if not rows:
        return None
    target, length, predicted = (np.concatenate(own).astype(np.float32) for own in zip(*rows, strict=True))
    return Centres(target_position=target, source_length=length, predicted=predicted)
