"""What the reference of a model from elsewhere says along given tokens."""

import numpy as np

from dragoman_export.model import ImportedModel, Subject
from dragoman_export.reference.imported import Imported
from dragoman_export.reference.model import ReferenceStepper, ReferenceSteps


def imported(subject: Subject) -> Imported:
    """The arrays of the model."""
    assert isinstance(subject.model, ImportedModel)
    return subject.model.imported


def log_probabilities(subject: Subject, source: list[int], target: list[int]) -> list[float]:
    """Of each token of a target and of its end."""
    bos, eos = subject.target_tokenizer.bos_id, subject.target_tokenizer.eos_id
    steps = ReferenceSteps(subject.model.reference(), [source], subject.source_tokenizer.pad_id)
    scores = [steps.step(np.array([[token]]))[0][0] for token in [bos, *target]]
    return [float(row[id_]) for row, id_ in zip(scores, [*target, eos], strict=True)]


def open_reference(subject: Subject) -> ReferenceStepper:
    """The reference behind the beam search."""
    return ReferenceStepper(
        subject.model.reference(),
        source_pad_id=subject.source_tokenizer.pad_id,
        eos_id=subject.target_tokenizer.eos_id,
    )
