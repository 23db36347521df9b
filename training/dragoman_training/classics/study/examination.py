"""One checkpoint examined: it translates the test set, and says where it looked."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.alignment.head import ChosenHead, choose_head
from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.classics.study.buckets import num_words
from dragoman_training.classics.study.findings import Example, Findings, centres_of, sharpness_of
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.classics.study.scores import Scorer
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus
from dragoman_training.decoding.forced_attention import ForcedAttention, attention_along, has_attention
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import Luong, Transformer

BLOCK_SENTENCES = 64
"""Sentences translated at once: the step of the progress bar."""
NO_LIMIT = 100_000
"""Tokens that no text of a test set has: what a translation may have is by its source's length alone."""


def examine(
    label: str,
    path: Path,
    test_set: StudySet,
    *,
    beam_size: int,
    length_penalty: float,
    recipe_folder: Path | None,
    device: torch.device,
    advance: Callable[[int], None],
) -> Findings:
    """Translates the test set and looks at the attention along the model's own translations.

    The recipe's paths start at `recipe_folder`, or where they did in training. `advance` is told how many
    sentences are done. Raises CheckpointError or OSError.
    """
    checkpoint = load_checkpoint(path)
    model = checkpoint.model.to(device)
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
    translator = Translator(model, checkpoint.source_tokenizer, checkpoint.target_tokenizer, decoding)
    sources = translator.encode(test_set.sources)
    attends = has_attention(model)
    tokens: dict[int, tuple[int, ...]] = {}
    attentions: dict[int, ForcedAttention] = {}
    by_length = sorted(range(len(sources)), key=lambda number: len(sources[number]))
    for start in range(0, len(by_length), BLOCK_SENTENCES):
        numbers = by_length[start : start + BLOCK_SENTENCES]
        hypotheses = translator.search([sources[number] for number in numbers])
        tokens |= dict(zip(numbers, (hypothesis.tokens for hypothesis in hypotheses), strict=True))
        own_numbers = [number for number in numbers if number in test_set.own]
        if attends and own_numbers:
            forced = attention_along_tokens(
                checkpoint, [sources[n] for n in own_numbers], [tokens[n] for n in own_numbers]
            )
            attentions |= dict(zip(own_numbers, forced, strict=True))
        advance(len(numbers))
    target = checkpoint.target_tokenizer
    translations = tuple(target.decode(tokens[number]).text for number in range(len(sources)))
    language = checkpoint.recipe.data.target_language
    if head is not None and head.of_input:
        attentions = {number: _of_read(attention) for number, attention in attentions.items()}
    in_order = [attentions[number] for number in sorted(attentions)]
    return Findings(
        label=label,
        recipe=checkpoint.recipe,
        progress=checkpoint.progress,
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        vocabularies=(checkpoint.source_tokenizer.model, target.model),
        longest_trained=longest_trained,
        tokens=tuple(tokens[number] for number in range(len(sources))),
        translations=translations,
        cased=Scorer(translations, test_set.references, lowercase=False, target_language=language),
        lower_cased=Scorer(translations, test_set.references, lowercase=True, target_language=language),
        head=head,
        sharpness=sharpness_of(in_order) if attends else None,
        centres=centres_of(in_order, model.config.window) if isinstance(model, Luong) else None,
        examples=tuple(
            Example(
                source_pieces=_pieces(checkpoint.source_tokenizer, sources[number]),
                target_pieces=_pieces(
                    target, [*tokens[number], target.eos_id][: len(attentions[number].weights_UT)]
                ),
                attention=attentions[number],
            )
            for number in test_set.examples
            if attends
        ),
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
    return (
        dataclasses.replace(attention, weights_UT=attention.weights_UT[1:])
        if len(attention.weights_UT) > 1
        else attention
    )


def _from_training(
    checkpoint: Checkpoint, recipe_folder: Path | None
) -> tuple[ChosenHead | None, int | None]:
    """A Transformer's alignment head, and the words of the longest source that the model was trained on.

    The second is None where it can't be known.
    """
    model, recipe = checkpoint.model, checkpoint.recipe
    head = None
    try:
        corpus = read_training_corpus(checkpoint, recipe_folder)
    except TrainingCorpusError as error:
        if isinstance(model, Transformer):
            head = ChosenHead(head=None, of_input=False, told=f"the last layer's mean, since {error}")
        return head, None
    if isinstance(model, Transformer):
        source, target = checkpoint.source_tokenizer, checkpoint.target_tokenizer
        limit = recipe.decoding.max_source_tokens - 1  # Its end is a token too.
        head = choose_head(model, source, target, corpus, max_tokens=limit)
    return head, None if recipe.training.start_from else max(map(num_words, corpus.sources))


def _pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(tokenizer.piece(id_) for id_ in ids)
