"""Transformers of random arrays, as importers give them, and what the reference of such a model says."""

from typing import Any

import numpy as np

from dragoman_export.importers.subjects import sinusoids
from dragoman_export.model import ImportedModel, Subject
from dragoman_export.reference.imported import Floats, Imported, Name, TransformerArchitecture, layer_parts
from dragoman_export.reference.model import ReferenceStepper, ReferenceSteps

WIDTH, UNITS, VOCABULARY = 32, 48, 60


def make_arrays(**changes: Any) -> Imported:
    """Two layers a side; `changes` are settings of the architecture."""
    sizes = {"width": WIDTH, "heads": 4, "feed_forward": UNITS, "encoder_layers": 2, "decoder_layers": 2}
    settings: dict[str, Any] = {"past": "self-attention", "norm": "post", "activation": "relu"}
    settings |= {"embedding_scale": 1.0, "bos": 2, "never_produced": (0, 2)}
    architecture = TransformerArchitecture(**(sizes | settings | changes))
    random = np.random.default_rng(3)
    weights: dict[str, Floats] = {}

    def draw(*shape: int, size: float = 1.0) -> Floats:
        return (random.normal(size=shape) * size).astype(np.float32)

    def linear(name: str, outputs: int, inputs: int) -> None:
        weights[f"{name}.weight"] = draw(outputs, inputs, size=inputs**-0.5)
        weights[f"{name}.bias"] = draw(outputs, size=0.1)

    def norm(name: str) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + draw(WIDTH, size=0.1), draw(WIDTH, size=0.1)

    weights[Name.SOURCE] = weights[Name.TARGET] = weights[Name.OUTPUT] = draw(VOCABULARY, WIDTH, size=0.5)
    weights[Name.POSITIONS] = weights[Name.TARGET_POSITIONS] = sinusoids(110, WIDTH)
    weights[Name.BIAS] = draw(VOCABULARY, size=0.3)
    for side in ("encoder", "decoder"):
        for part in layer_parts(architecture):
            if part.side == side and part.inputs:
                linear(part.own_name, part.outputs, part.inputs)
            elif part.side == side:
                norm(part.own_name)
        if architecture.norm == "pre":
            norm(f"{side}_norm")
    return Imported(architecture=architecture, weights=weights)


def imported(subject: Subject) -> Imported:
    """The arrays of the model."""
    assert isinstance(subject.model, ImportedModel)
    return subject.model.imported


def assert_same(found: Imported, expected: Imported) -> None:
    """Of architecture and weights."""
    assert found.architecture == expected.architecture
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        assert np.array_equal(found.weights[name], weight), name


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
