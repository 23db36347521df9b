"""Training and translation keep to the model's device, seen without one: on PyTorch's meta device.

What this does not see is what only a GPU's own kernels do: numbers, cuDNN's recurrent layers, autocast.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import ALIKE, CONFIGS, ENSEMBLE
from tests.training.toy_pairs import DATA, long_but_for, toy_model, trainer_over
from torch import Tensor
from torch.fx.experimental import _config
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman_training.checkpoint import read_checkpoint, vocabulary_shape
from dragoman_training.data.corpus import Corpus
from dragoman_training.decoding.forced_attention import attention_along
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import LanguageModelConfig, ModelConfig
from dragoman_training.models.ensemble import Ensemble
from dragoman_training.recipe.data import DataConfig, SubwordSamplingConfig
from dragoman_training.recipe.settings import DecodingConfig, Recipe, ScheduledSamplingConfig, TrainingConfig
from dragoman_training.run.reporter import Reporter

CPU, META = torch.device("cpu"), torch.device("meta")
BETWEEN_DEVICES = (
    torch.ops.aten.copy_.default,
    # Lengths are on the CPU, wherever what they are the lengths of is.
    torch.ops.aten._pack_padded_sequence.default,
    torch.ops.aten._pad_packed_sequence.default,
)
DECODING = DecodingConfig(beam_size=2, max_output_tokens=3)
# Few and short: without values an operator takes longer than with them.
CORPUS = Corpus(["der hund.", "ein mann ruft."], ["the dog.", "a man calls."])


class OneDevice(TorchDispatchMode):
    """Refuses operators whose tensors lie on two devices, as GPUs do; the meta device lets many pass.

    Only a tensor without axes, a number, may lie on the CPU. Meta tensors have no values: the CPU reads ones.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled():
            # There operators come as they were called, not yet as those that they are made of.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        devices = {str(tensor.device) for tensor in tensors if tensor.ndim}
        if len(devices) > 1 and func not in BETWEEN_DEVICES:
            raise RuntimeError(f"{func} of tensors on {' and '.join(sorted(devices))}")
        if tensors and tensors[0].device == META:
            if func is torch.ops.aten._local_scalar_dense.default:
                return torch.ones((), dtype=tensors[0].dtype).item()
            if kwargs.get("device") == CPU:
                return torch.ones(tensors[0].shape, dtype=tensors[0].dtype)
        return func(*args, **kwargs)


@pytest.fixture(autouse=True)
def one_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Which tokens are padding is a value too: none is.
    monkeypatch.setattr(_config, "meta_nonzero_assume_all_nonzero", True)
    # It knows no meta device, not even to be told that it is off.
    monkeypatch.setattr(torch, "autocast", lambda *arguments, **options: nullcontext())
    with OneDevice():
        yield


def recipe_of(config: ModelConfig, token: Any = "best") -> Recipe:
    has_source = not isinstance(config, LanguageModelConfig)
    text = DataConfig(target_language="en", train_target=("train.en",), valid_target=("valid.en",))
    return Recipe(
        name="toy",
        data=DATA if has_source else text,
        model=config,
        training=TrainingConfig(
            batch_tokens=1000,
            max_epochs=2,
            validate_every_epochs=2,
            warmup_steps=1,
            label_smoothing=0.1,
            ema_decay=0.9,
            early_stopping="loss",
            precision="fp32",
        ),
        # The first step reads the reference alone; those after it read what was predicted too.
        scheduled_sampling=ScheduledSamplingConfig(decay="linear", pace=10, token=token),
        subword_sampling=SubwordSamplingConfig(source=has_source, target=True),
        decoding=DECODING,
    )


def test_an_operator_of_tensors_on_two_devices_is_refused() -> None:
    table_VD, ids_S = torch.zeros(5, 3, device=META), torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="on cpu and meta"):
        functional.embedding(ids_S, table_VD)
    with torch.inference_mode(), pytest.raises(RuntimeError, match="on cpu and meta"):
        functional.linear(torch.zeros(2, 3), table_VD)
    assert functional.embedding(ids_S.to(META), table_VD).sum().item() == 1


@pytest.mark.parametrize("family", long_but_for(("luong", "transformer", "structured"), CONFIGS))
def test_a_run_keeps_to_its_device(family: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Steps, validations with their searches, and what is saved and resumed."""
    with Reporter(tmp_path) as reporter:
        first, second = (
            trainer_over(recipe_of(CONFIGS[family], token), tokenizer, CORPUS, tmp_path, reporter, "meta")
            for token in ("sampled", "best")
        )
        first.run()
        tensors, _, progress = read_checkpoint(first.last_path)
        second.restore(tensors, progress | {"epoch": 1})
        second.run()
    assert second.progress.step > first.progress.step > 1
    assert len(second.progress.validations) > len(first.progress.validations) > 0
    model, optimizer = second._model, second._optimizer
    for parameter in model.parameters():
        assert parameter.device == optimizer.state[parameter]["exp_avg"].device == META


@pytest.mark.parametrize("family", long_but_for({*CONFIGS, "ensemble"} - ALIKE, (*CONFIGS, "ensemble")))
def test_translating_keeps_to_its_device(family: str, tokenizer: Tokenizer) -> None:
    configs = ENSEMBLE if family == "ensemble" else (CONFIGS[family],)
    members = [toy_model(config, tokenizer) for config in configs]
    model = Ensemble(members, vocabulary_shape(tokenizer, tokenizer)) if members[1:] else members[0]
    model.to(META)
    translator = Translator(model, tokenizer, tokenizer, DECODING)
    assert len(translator.translate(CORPUS.sources)) == len(CORPUS)
    sources, targets = tokenizer.encode_ids(CORPUS.sources), tokenizer.encode_ids(CORPUS.targets)
    looks = attention_along(model, (tokenizer, tokenizer), sources, targets)
    shapes = [(len(target), len(source)) for source, target in zip(sources, targets, strict=True)]
    assert [look.weights_UT.shape for look in looks] == shapes
