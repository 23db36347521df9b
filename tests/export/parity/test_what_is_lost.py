"""The gate's measure tells broken models from sound ones, whatever their depth and precision.

Here a model in PyTorch that rounds as a precision does stands in for its graphs, which take minutes to make
for all of these; real graphs of the deepest are in `test_deep_graphs`.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.export.mutations import BOS, EOS, MUTATIONS, PAD, VOCABULARY, make_deep, mutated
from tests.export.toy_checkpoint import random_sources

from dragoman_export.parity.loss import Loss, OwnWords, ParityError, check_loss
from dragoman_export.parity.sentences import TEXT_LENGTHS, TEXT_STEPS
from dragoman_export.parity.torch_reference import TorchReference, rounded_to_int8
from dragoman_training.models import Seq2Seq, Transformer
from dragoman_training.models.layers.transformer_layers import Norm

DEPTHS = (2, 24)
"""Layers of both sides together."""


def rounded_to_fp16(model: Seq2Seq) -> Seq2Seq:
    """A copy whose weights, and what goes into products and comes out, are numbers of 16 bits."""
    model = copy.deepcopy(model)

    def round_input(module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (inputs[0].half().float(), *inputs[1:])

    for parameter in model.parameters():
        parameter.copy_(parameter.half().float())
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(round_input)
            module.register_forward_hook(lambda module, inputs, output: output.half().float())
    return model


ROUND: dict[str, Callable[[Seq2Seq], Seq2Seq]] = {"int8": rounded_to_int8, "fp16": rounded_to_fp16}


def listen_to(model: Transformer) -> tuple[OwnWords, Loss]:
    """What the model says, and what it loses by rounding to eight bits."""
    words = OwnWords(
        TorchReference(model, BOS),
        random_sources(list(TEXT_LENGTHS), VOCABULARY, EOS),
        pad_id=PAD,
        eos_id=EOS,
        max_steps=TEXT_STEPS,
        follows_draws=True,
    )
    return words, loss_of(words, rounded_to_int8(model))


def loss_of(words: OwnWords, model: Seq2Seq) -> Loss:
    return words.loss_of_reference(TorchReference(model, BOS))


def passes(precision: str, found: Loss, rounded: Loss, entropy: float) -> bool:
    """Whether the gate lets through what is so far from its reference."""
    try:
        check_loss(precision, found, rounded, entropy)
    except ParityError:
        return False
    return True


@pytest.mark.parametrize("norm", [pytest.param("pre", marks=pytest.mark.long), "post"])
@pytest.mark.parametrize("num_layers", DEPTHS)
def test_a_sound_model_passes_and_every_mutation_of_it_fails(num_layers: int, norm: Norm) -> None:
    model = make_deep(num_layers, norm)
    words, rounded = listen_to(model)
    entropy = float(words.entropy_N.mean())
    for precision, round_model in ROUND.items():
        check_loss(precision, loss_of(words, round_model(model)), rounded, entropy)
        passed = [
            mutation
            for mutation in MUTATIONS
            if passes(precision, loss_of(words, round_model(mutated(model, mutation))), rounded, entropy)
        ]
        assert passed == [], precision


def test_a_model_that_is_surer_of_itself_passes_as_well() -> None:
    """Differences of log-probabilities grow with it, and so do those of PyTorch that rounds."""
    for sharpness in (1, 3, 9):
        model = make_deep(12, "post")
        model.decoder_layers[-1].feed_forward_residual.norm.weight.mul_(sharpness)
        words, rounded = listen_to(model)
        check_loss("int8", loss_of(words, rounded_to_int8(model)), rounded, float(words.entropy_N.mean()))


def loss_of_size(divergence: float, distance: float, attention: float) -> Loss:
    """Everywhere the same."""
    return Loss(
        divergence_N=np.full(3, divergence),
        attention_N=np.full(3, attention),
        candidates_N=np.zeros(3),
        agrees_N=np.ones(3, bool),
        drawn_N=np.zeros(3),
        tensors={"memory.keys": distance},
    )


@pytest.mark.parametrize(
    ("precision", "rounded", "allowed", "entropy"),
    [
        ("int8", (1e-3, 0.1, 0.1), (4e-3, 0.3, 0.3), 1.0),
        ("fp16", (1e-3, 0.1, 0.1), (0.25e-3, 0.025, 0.05), 1.0),
        ("int8", (0, 0, 0), (1e-6, 2e-3, 1e-3), 1.0),
        ("int8", (1, 1, 1), (0.01, 3, 3), 0.02),
        ("int8", (1, 1, 1), (0.5, 3, 3), 5.0),
    ],
)
def test_what_is_allowed_is_what_the_decision_says(
    precision: str, rounded: tuple[float, ...], allowed: tuple[float, ...], entropy: float
) -> None:
    """In shares of what rounding to eight bits does, where that is little as such, and of the entropy."""

    def is_allowed(*shares: float) -> bool:
        found = loss_of_size(*(share * most for share, most in zip(shares, allowed, strict=True)))
        return passes(precision, found, loss_of_size(*rounded), entropy)

    assert is_allowed(0.99, 0.99, 0.99)
    assert not any(is_allowed(*shares) for shares in 1.01 * np.eye(3))


def test_a_model_that_rounding_ruins_is_refused_though_its_graphs_are_sound() -> None:
    ruined = loss_of_size(0.5, 0, 0)
    with pytest.raises(ParityError, match=r"sound, but the model loses too much .*0\.5 nats .* 0\.3 is"):
        check_loss("int8", ruined, ruined, entropy=3.0)


def test_the_divergence_is_estimated_from_what_is_drawn() -> None:
    """Held against its definition over the whole vocabulary, of which a single token is drawn each time."""
    model = make_deep(2, "post")
    words, rounded = listen_to(model)
    other = rounded_to_int8(model)
    exact = []
    for sources, read_U in zip(words.sources, torch.from_numpy(words.read_US.T), strict=True):
        length = torch.tensor([len(sources)])
        scores = [
            each.output(each.decode(*each.encode(torch.tensor([sources]), length), read_U[None]))
            for each in (model, other)
        ]
        expected_UV, found_UV = (score[0].log_softmax(dim=-1) for score in scores)
        exact.append((expected_UV.exp() * (expected_UV - found_UV)).sum(dim=-1))
    runs_SU = torch.from_numpy(words.runs_US.T)
    assert rounded.divergence_N.mean() == pytest.approx(float(torch.stack(exact)[runs_SU].mean()), rel=0.3)
    assert (rounded.divergence_N >= 0).all()
