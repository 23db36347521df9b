"""Checkpoints of every family, small enough to be exported in a second or two, with random weights."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx_ir as ir
import torch
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.pieces import BESIDE_PAD, train_pieces

from dragoman_export import assembly
from dragoman_export.graphs.builder import Graphs
from dragoman_export.int8.calibration import Steps
from dragoman_export.parity.gate import Parity, ParityGate
from dragoman_export.parity.onnx_stepper import Arrays, Context, OnnxStepper
from dragoman_export.reference.model import ReferenceModel
from dragoman_export.trained import TrainedModel
from dragoman_training import models
from dragoman_training.checkpoint import Checkpoint, vocabulary_shape, write_checkpoint
from dragoman_training.models import ModelConfig, Seq2Seq, Transformer
from dragoman_training.recipe.data import DataConfig
from dragoman_training.recipe.settings import CardConfig, DecodingConfig, Recipe, TrainingConfig

plain = partial(models.PlainConfig, embedding_size=12, units=14)
luong = partial(models.LuongConfig, embedding_size=12, decoder_units=14)
shallow = partial(luong, encoder_layers=1, decoder_layers=1, encoder_units=7, input_feeding=False)
attentive = {"embedding_size": 12, "encoder_units": 10, "decoder_units": 14}
bahdanau = partial(models.BahdanauConfig, **attentive, attention_units=9)
multi_head = partial(models.MultiHeadConfig, **attentive, attention_units=12)
transformer = partial(models.TransformerConfig, width=12, heads=3, feed_forward=20, encoder_layers=1)
learned = partial(transformer, decoder_layers=1, positions="learned", max_positions=130)
language_model = partial(models.LanguageModelConfig, embedding_size=12, units=14, attention_units=9)
CONFIGS: dict[str, ModelConfig] = {
    "luong": luong(encoder_layers=2, encoder_units=10, decoder_layers=2),
    "bahdanau-gru": bahdanau(cell="gru", encoder_layers=2),
    "bahdanau-lstm": bahdanau(cell="lstm", encoder_layers=1),
    "plain": plain(layers=1, reverse_source=False),
    "plain-relu": plain(cell="rnn-relu", embedding_scale=4.0, layers=2),
    "plain-simple": plain(cell="rnn", embedding_scale=4.0, layers=2),
    "plain-gru": plain(cell="gru", embedding_scale=4.0, layers=3),
    "luong-local-m": luong(encoder_units=7, decoder_layers=1, score="dot", attention="local-m", window=2),
    "luong-local-p": luong(
        encoder_layers=1, encoder_units=10, score="concat", attention="local-p", window=4, input_feeding=False
    ),
    "luong-scaled": shallow(embedding_scale=3.0, score="scaled_dot"),
    "multi-head": multi_head(embedding_scale=4.0, heads=3),
    "structured": models.StructuredConfig(**attentive, annotations=4, annotation_units=9),
    "transformer": transformer(decoder_layers=2),
    "transformer-post": learned(width=16, heads=2, encoder_layers=2, norm="post", activation="swish"),
    "transformer-untied": learned(shared_positions=False, activation="gelu-sigmoid", tied_output=False),
    "ssru": transformer(width=16, heads=2, encoder_layers=2, decoder_layers=2, past="ssru"),
    "lm": language_model(layers=1),
    "lm-span": language_model(layers=2, span=3),
}
ALIKE = {
    "bahdanau-lstm", "deep-ensemble", "lm-span", "luong-local-m", "luong-scaled", "plain-gru", "plain-relu",
    "plain-simple", "transformer-post", "transformer-untied",
}  # fmt: skip
"""Families that differ little from others, or take long: only the long tests try their graphs."""
ENSEMBLE = (
    CONFIGS["luong-scaled"],
    # All of a member's layers are traced.
    replace(CONFIGS["transformer-post"], encoder_layers=1),
    CONFIGS["plain"],
)
"""Members that have little in common: one of them grows, and one looks nowhere."""
DEEP_ENSEMBLE = (
    replace(CONFIGS["transformer-post"], encoder_layers=2, decoder_layers=3),
    CONFIGS["transformer"],
    CONFIGS["luong"],
)
"""Members with layers of their own."""
PROGRESS = {"step": 1200, "epoch": 2, "batch": 0, "seconds": 600.0, "best_bleu": 40.0, "validations": []}
PROGRESS |= {"device": "cpu", "precision": "fp32"}


CARD = CardConfig(description="For tests | nothing else.", data="Nothing at all", licence="CC0-1.0")
CARD = replace(CARD, credit='Nobody, "really"')


def train_tokenizer(vocabulary: int) -> Tokenizer:
    lines = ["abcdefghijklm nopqrstuvwxyz äöüß ABCDEFGHIJ"] * 8
    return Tokenizer(train_pieces(lines, vocabulary, **BESIDE_PAD))


def make_checkpoint(config: ModelConfig, source: Tokenizer, target: Tokenizer) -> Checkpoint:
    """A checkpoint with random weights, large enough to make clear choices."""
    torch.manual_seed(3)
    model = models.build_model(config, vocabulary_shape(source, target)).eval()
    with torch.no_grad():
        # A Transformer's layers are normalised: larger ones would only enlarge differences of rounding.
        # What begins at a size of 1, and is enlarged below, would drown all else in a toy's short sums.
        if not isinstance(model, Transformer):
            model.output.embedding.weight.mul_(0.25)
        enlarged = model.output if isinstance(model, Transformer) else model
        # What nothing bounds would grow from word to word.
        is_bounded = getattr(config, "cell", None) != "rnn-relu"
        for name, parameter in enlarged.named_parameters():
            parameter.mul_(2.5 if is_bounded or "weight_hh" not in name else 1)
    is_pairs = not isinstance(config, models.LanguageModelConfig)
    recipe = Recipe(
        name="toy",
        data=DataConfig(
            source_language="de" if is_pairs else "",
            target_language="en",
            train_source=("train.de",) if is_pairs else (),
            train_target=("train.en",),
            valid_source=("val.de",) if is_pairs else (),
            valid_target=("val.en",),
        ),
        model=config,
        training=TrainingConfig(early_stopping="bleu" if is_pairs else "loss"),
        decoding=DecodingConfig(max_source_tokens=60, max_output_tokens=12, beam_size=4),
        card=CARD,
    )
    tokenizers = {"source_tokenizer": source, "target_tokenizer": target}
    return Checkpoint(recipe=recipe, model=model, progress=PROGRESS, **tokenizers)


def make_members(name: str, tokenizer: Tokenizer) -> list[Checkpoint]:
    """The one checkpoint of `CONFIGS` of that name, or those of "ensemble" or "deep-ensemble"."""
    ensembles = {"ensemble": ENSEMBLE, "deep-ensemble": DEEP_ENSEMBLE}
    configs = ensembles[name] if name in ensembles else (CONFIGS[name],)
    return [make_checkpoint(each, tokenizer, tokenizer) for each in configs]


def make_graphs(
    model: Seq2Seq, precisions: Sequence[str], find: Callable[[Graphs], Steps] | None = None
) -> dict[str, Graphs]:
    """The graphs of a model in PyTorch."""
    return assembly.make_graphs(TrainedModel(model, bos=0), precisions, find=find)


Check = Callable[..., Parity]
IDS = SpecialIds(pad=0, unk=1, bos=2, eos=3)
"""Of the toys' vocabularies."""


def open_gate(reference: ReferenceModel, decoding: DecodingDefaults, vocabulary: int = 40) -> ParityGate:
    """The gate before a reference with as many pieces on both sides."""
    return ParityGate(reference, decoding, source_vocabulary=vocabulary, source_ids=IDS, target_ids=IDS)


def open_stepper(folder: Path, checkpoint: Checkpoint) -> OnnxStepper:
    return OnnxStepper.between(checkpoint.source_tokenizer, checkpoint.target_tokenizer, folder)


def first_outputs(stepper: OnnxStepper, context: Context) -> Arrays:
    """What the first step of two sentences returns."""
    ids, parent_SK = np.full((2, 1), 2), np.array([[0], [1]])
    return stepper.run_step(context, ids, parent_SK, np.zeros((2, 1), np.float32), forced_SK=ids)[0]


def random_sources(lengths: list[int], vocabulary: int, eos_id: int) -> list[list[int]]:
    """Sentences of random tokens, each with its end."""
    generator = np.random.default_rng(5)
    return [[*generator.integers(4, vocabulary, length - 1).tolist(), eos_id] for length in lengths]


def save(checkpoint: Checkpoint, path: Path) -> Path:
    """Writes the checkpoint to a file."""
    tensors = {f"model.{name}": value for name, value in checkpoint.model.named_parameters()}
    tokenizers = (checkpoint.source_tokenizer, checkpoint.target_tokenizer)
    write_checkpoint(path, checkpoint.recipe, tokenizers, tensors, checkpoint.progress)
    return path


def change_weight(model: ir.Model, name: str, change: Callable[[np.ndarray], None]) -> None:
    """Changes a weight of a graph in place."""
    value = model.graph.initializers[name]
    assert value.const_value is not None
    array = value.const_value.numpy().copy()
    change(array)
    value.const_value = ir.tensor(array, name=name)
