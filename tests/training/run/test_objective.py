"""The objective is the model's own loss, whole or in parts; scheduled sampling mixes what decoders read."""

import pytest
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import CONFIGS
from tests.training.toy_pairs import toy_corpus, toy_model, toy_tokenizer

from dragoman_training.data.batching import Pairs
from dragoman_training.models import Seq2Seq
from dragoman_training.run.objective import Objective, decode_scheduled, linear_cross_entropy

FAMILIES = pytest.mark.parametrize("family", CONFIGS)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return toy_tokenizer()


@pytest.fixture(scope="module")
def pairs(tokenizer: Tokenizer) -> Pairs:
    return Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None)


def model_of(family: str, tokenizer: Tokenizer) -> Seq2Seq:
    torch.manual_seed(2)
    return toy_model(CONFIGS[family], tokenizer)


@FAMILIES
def test_with_the_reference_alone_it_is_the_models_own_loss_to_the_bit(
    family: str, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    model = model_of(family, tokenizer).train()
    objective = Objective(model, label_smoothing=0.1)
    batch = pairs.batch([0, 1, 2])
    torch.manual_seed(5)
    minimised, plain = objective(batch)

    torch.manual_seed(5)
    memory, state = model.encode(batch.source_ST, batch.source_length_S)
    features_SUD = model.decode(memory, state, batch.target_input_SU)
    counted_SU = batch.counted
    expected, expected_plain = linear_cross_entropy(
        features_SUD[counted_SU],
        model.output.embedding.weight,
        model.output.bias,
        batch.target_output_SU[counted_SU],
        smoothing=0.1,
    )
    penalty = model.penalty(memory)
    if penalty is not None:
        expected = expected + 3 * penalty
        assert minimised > expected_plain
    assert torch.equal(minimised, expected)
    assert torch.equal(plain, expected_plain)


@FAMILIES
def test_gradients_of_parts_add_up_to_those_of_the_whole(
    family: str, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    model = model_of(family, tokenizer).eval()
    objective = Objective(model, label_smoothing=0.1)
    objective(pairs.batch(range(6)))[0].backward()
    whole = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    for numbers in ([0, 1], [2, 3, 4, 5]):
        objective(pairs.batch(numbers))[0].backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, whole[name], rtol=1e-4, atol=1e-4)


@FAMILIES
def test_without_the_reference_the_decoder_reads_what_it_predicted(
    family: str, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    model = model_of(family, tokenizer).eval()
    batch = pairs.batch([0, 3])
    memory, state = model.encode(batch.source_ST, batch.source_length_S)
    features_SUD = decode_scheduled(model, memory, state, batch.target_input_SU, teacher_forcing=0.0)
    own_SU = model.output(features_SUD)[:, :-1].argmax(dim=-1)
    read_SU = torch.cat([batch.target_input_SU[:, :1], own_SU], dim=1)
    assert not torch.equal(read_SU, batch.target_input_SU)
    decoded = model.decode(memory, state, read_SU)
    torch.testing.assert_close(features_SUD, decoded, rtol=1e-4, atol=1e-5)


@FAMILIES
def test_scheduled_sampling_has_gradients(family: str, tokenizer: Tokenizer, pairs: Pairs) -> None:
    model = model_of(family, tokenizer)
    objective = Objective(model, label_smoothing=0.1)
    objective(pairs.batch([0, 1]), 0.5)[0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
