"""Every family: steps agree with teacher forcing, and neither padding nor neighbours matter."""

import math
from typing import get_args

import pytest
import torch
from tests.export import toy_checkpoint
from tests.export.toy_checkpoint import luong, plain
from torch import Tensor, nn

from dragoman_training.models import (
    LanguageModel,
    LanguageModelConfig,
    Luong,
    ModelConfig,
    MultiHeadConfig,
    Plain,
    Seq2Seq,
    VocabularyShape,
    build_model,
)
from dragoman_training.models.attentional import AttentionalLSTM

CONFIGS: dict[str, ModelConfig] = toy_checkpoint.CONFIGS | {
    "luong-deep": luong(encoder_units=10, encoder_layers=3, decoder_layers=3, embedding_scale=4),
    "luong-concat": luong(encoder_units=10, score="concat", input_feeding=False, embedding_scale=4),
    "luong-local-m-unfed": luong(encoder_units=10, attention="local-m", window=2, input_feeding=False),
    "multi-head-unfed": MultiHeadConfig(
        embedding_size=12, encoder_units=10, decoder_units=14, attention_units=8, heads=1, input_feeding=False
    ),
    "plain-reversed": plain(embedding_scale=4, layers=2),
}
VOCABULARY = VocabularyShape(source_size=40, target_size=30, shared=False, bos=2, never_produced=(0, 1, 2))
ONE_VOCABULARY = VocabularyShape(source_size=40, target_size=40, shared=True, bos=2, never_produced=(0, 1, 2))
"""A language model reads sources of its own."""


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    torch.manual_seed(3)
    config = CONFIGS[request.param]
    has_one = isinstance(config, LanguageModelConfig)
    return build_model(config, ONE_VOCABULARY if has_one else VOCABULARY).eval()


def forced(model: Seq2Seq, source_ST: Tensor, length_S: Tensor, target_SU: Tensor) -> Tensor:
    with torch.inference_mode():
        return model.output(model(source_ST, length_S, target_SU))


def test_stepping_agrees_with_teacher_forcing_in_gradients_too(model: Seq2Seq) -> None:
    source_ST, length_S = torch.randint(4, 40, (3, 6)), torch.tensor([6, 2, 4])
    target_SU, weights_SUV = torch.randint(4, 30, (3, 5)), torch.randn(3, 5, 1)
    at_once_SUV = model.output(model(source_ST, length_S, target_SU))
    memory, state = model.encode(source_ST, length_S)
    stepped = []
    for token_S1 in target_SU.split(1, dim=1):
        features_SD, _, state = model.step(token_S1, memory, state)
        stepped.append(model.output(features_SD))
    stepped_SUV = torch.stack(stepped, dim=1)
    torch.testing.assert_close(stepped_SUV, at_once_SUV, rtol=1e-4, atol=1e-5)
    gradients = (
        torch.autograd.grad((weights_SUV * logits_SUV.tanh()).sum(), list(model.parameters()))
        for logits_SUV in (stepped_SUV, at_once_SUV)
    )
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", ["luong-deep", "luong-concat", "plain-reversed"])
def test_the_scale_of_embeddings_goes_into_what_reads_them_without_a_trace(family: str) -> None:
    torch.manual_seed(3)
    model = build_model(CONFIGS[family], VOCABULARY).eval()
    assert isinstance(model, Luong | Plain)
    source_ST, length_S = torch.randint(4, 40, (3, 6)), torch.tensor([6, 2, 4])
    target_SU = torch.randint(4, 30, (3, 5))
    expected_SUV = forced(model, source_ST, length_S, target_SU)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}

    model.fold_embedding_scale()

    torch.testing.assert_close(forced(model, source_ST, length_S, target_SU), expected_SUV, rtol=0, atol=0)
    after = model.state_dict()
    changed = [name for name, weight in after.items() if not torch.equal(weight, before[name])]
    # The encoder's first layer, in each of its directions, and the decoder's; the table stays.
    assert len(changed) == (2 if family == "plain-reversed" else 3)
    for name in changed:
        torch.testing.assert_close(after[name], before[name] * 4, rtol=0, atol=0)


def test_neither_padding_nor_neighbours_matter(model: Seq2Seq) -> None:
    lengths = [1, 2, 9, 5]
    source_ST, target_SU = torch.randint(4, 40, (4, 12)), torch.randint(4, 30, (4, 5))
    together_SUV = forced(model, source_ST, torch.tensor(lengths), target_SU)
    for number, length in enumerate(lengths):
        here = slice(number, number + 1)
        alone = forced(model, source_ST[here, :length], torch.tensor([length]), target_SU[here])
        torch.testing.assert_close(together_SUV[here], alone, rtol=1e-4, atol=1e-5)


def test_rows_of_a_beam_are_independent_sentences(model: Seq2Seq) -> None:
    source_ST, length_S = torch.randint(4, 40, (2, 6)), torch.tensor([6, 3])
    token_SK = torch.randint(4, 30, (2, 3))
    with torch.inference_mode():
        memory, state = model.encode(source_ST, length_S)
        rows = {name: value.repeat_interleave(3, dim=0) for name, value in state.items()}
        features_RD, attention_SKT, _ = model.step(token_SK, memory, rows)
        for k in range(3):
            features_SD, attention_S1T, _ = model.step(token_SK[:, k : k + 1], memory, state)
            torch.testing.assert_close(features_RD.view(2, 3, -1)[:, k], features_SD)
            torch.testing.assert_close(attention_SKT[:, k], attention_S1T[:, 0])


def test_attention_is_a_distribution_over_the_source_alone(model: Seq2Seq) -> None:
    source_ST, length_S = torch.randint(4, 40, (4, 8)), torch.tensor([8, 1, 3, 5])
    with torch.inference_mode():
        memory, state = model.encode(source_ST, length_S)
        _, attention_SKT, _ = model.step(torch.full((4, 1), 2), memory, state)
    total_S1 = attention_SKT.sum(dim=2)
    if isinstance(model, Plain):
        assert (attention_SKT == 0).all()
    elif isinstance(model, LanguageModel):
        # Some may be on the zeros and bos, which come before the source.
        assert ((total_S1 >= 0) & (total_S1 < 1 + 1e-6)).all()
        assert total_S1[0] > 0
    elif isinstance(model, Luong) and model.config.attention == "local-p":
        assert ((total_S1 > 0) & (total_S1 <= 1)).all()
    else:
        torch.testing.assert_close(total_S1, torch.ones(4, 1))
    for number, length in enumerate(length_S.tolist()):
        assert (attention_SKT[number, 0, length:] == 0).all()


def test_pad_unk_and_bos_are_never_produced(model: Seq2Seq) -> None:
    memory, state = model.encode(torch.randint(4, 40, (2, 4)), torch.tensor([4, 4]))
    features_SD, _, _ = model.step(torch.full((2, 1), 2), memory, state)
    assert (model.output(features_SD).softmax(dim=-1)[:, :3] == 0).all()


def test_every_parameter_learns(model: Seq2Seq) -> None:
    features = model(torch.randint(4, 40, (3, 5)), torch.tensor([5, 4, 3]), torch.randint(4, 30, (3, 4)))
    model.output(features).logsumexp(dim=-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_recurrent_layers_begin_with_states_as_cudnn_wants_them(model: Seq2Seq) -> None:
    """It refuses states that are not contiguous, in float32, where no cast has copied them."""
    begun: list[Tensor] = []

    def note(module: nn.Module, inputs: tuple[object, ...]) -> None:
        for begin in inputs[1:]:
            begun.extend(begin if isinstance(begin, tuple) else [begin] if isinstance(begin, Tensor) else [])

    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.register_forward_pre_hook(note)
    forced(model, torch.randint(4, 40, (3, 6)), torch.tensor([6, 2, 4]), torch.randint(4, 30, (3, 5)))
    assert all(state.is_contiguous() for state in begun)
    if isinstance(model, AttentionalLSTM) and not getattr(model.config, "input_feeding", True):
        assert begun


@pytest.mark.parametrize("config", [each() for each in get_args(ModelConfig)], ids=lambda each: each.family)
def test_training_begins_with_the_loss_of_a_guess(config: ModelConfig) -> None:
    """At the sizes of recipes, which are the defaults: logits that begin far apart cost the first epoch."""
    torch.manual_seed(1)
    size = 2000
    shape = VocabularyShape(source_size=size, target_size=size, shared=True, bos=2, never_produced=(0, 1, 2))
    model = build_model(config, shape).train()
    target_SU = torch.randint(4, size, (4, 9))
    with torch.no_grad():
        features_SUD = model(torch.randint(4, size, (4, 8)), torch.tensor([8, 8, 6, 3]), target_SU[:, :-1])
        logits_RV = model.output(features_SUD).flatten(0, 1)
    loss = nn.functional.cross_entropy(logits_RV, target_SU[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(size), abs=1)
