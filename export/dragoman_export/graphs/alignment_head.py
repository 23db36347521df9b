"""The head of a Transformer whose weights its bundle gives out as alignments."""

import copy
import dataclasses
from collections.abc import Callable

from dragoman_export.subject import Subject
from dragoman_export.trained import TrainedModel
from dragoman_training.alignment.head import choose_head
from dragoman_training.data.corpus import Corpus
from dragoman_training.models.transformer import Transformer


def with_alignment_head(subject: Subject, corpus: Corpus, report: Callable[[str], None]) -> Subject:
    """The subject with the head chosen that agrees best; as it is where none does better than the mean.

    `report` is told what was found.
    """
    assert isinstance(subject.model, TrainedModel)
    model = subject.model.model
    if not isinstance(model, Transformer):
        return subject
    chosen = choose_head(
        model,
        subject.source_tokenizer,
        subject.target_tokenizer,
        corpus,
        max_tokens=subject.decoding.max_source_tokens - 1,  # Its end is a token too.
    )
    report(f"alignments: {chosen.reason}")
    if chosen.head is None:
        return subject
    model = copy.copy(model)
    model.alignment_head = chosen.head
    trained = dataclasses.replace(subject.model, model=model)
    return dataclasses.replace(subject, model=trained, attention_of_input=chosen.of_input)
