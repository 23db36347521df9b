"""`dragoman adapt`: the model of a bundle trained further, on pairs of one's own."""

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_export.options import FILE, FOLDER, NEW_FOLDER

if TYPE_CHECKING:
    import numpy as np
    from dragoman_bundle.bundle import Bundle
    from numpy.typing import NDArray

    from dragoman_training.data.corpus import Corpus
    from dragoman_training.recipe.settings import Recipe

START, RECIPE = "start.safetensors", "recipe.toml"


@click.command()
@click.argument("folder", metavar="BUNDLE", type=FOLDER)
@click.argument("source", metavar="SOURCE", type=FILE)
@click.argument("target", metavar="TARGET", type=FILE)
@click.option("--out", type=NEW_FOLDER, help="Folder of the training.  [default: runs/NAME-adapted]")
@click.option(
    "--epochs", default=3, show_default=True, type=click.IntRange(min=1), help="Passes over the pairs."
)
@click.option(
    "--learning-rate",
    type=click.FloatRange(min=0, min_open=True),
    help="Higher learns more of the pairs and forgets more.  [default: a tenth of the model's own]",
)
@click.option(
    "--held-out",
    default=500,
    show_default=True,
    type=click.IntRange(min=10),
    help="Pairs that are not trained on, to measure by; at most a tenth of all.",
)
@click.option(
    "--old",
    nargs=2,
    type=FILE,
    metavar="SOURCE TARGET",
    help="Text of the kind that the model knows, to say what it lost there.",
)
@click.option("--resume", is_flag=True, help="Go on where the folder's training stopped.")
@click.pass_context
def adapt(
    context: click.Context,
    *,
    folder: Path,
    source: Path,
    target: Path,
    out: Path | None,
    epochs: int,
    learning_rate: float | None,
    held_out: int,
    old: tuple[Path, Path] | None,
    resume: bool,
) -> None:
    """Train the model of BUNDLE further on the lines of SOURCE and TARGET, which match.

    It begins with the bundle's weights, those in 8 bits as the numbers they stand for, and says how good it
    was before and is after: on lines held out of yours, and with --old on other text. A bundle of a
    Transformer that was exported here will do.

    \b
    Example:
      dragoman adapt models/de-en/3 our.de our.en --old val.de val.en
    """
    from dragoman_bundle.bundle import open_bundle

    from dragoman_training.cli import train
    from dragoman_training.data.files import read_parallel

    bundle = open_bundle(folder)
    out = out or Path("runs") / f"{bundle.manifest.name}-adapted"
    if not resume:
        recipe = start_checkpoint(bundle, out / START)
        rate = learning_rate or recipe.training.learning_rate / 10
        _write_run(recipe, read_parallel(source, target), out, held_out=held_out, epochs=epochs, rate=rate)
    context.invoke(train, recipe_path=out / RECIPE, out=out, resume=resume)
    texts = {"held out": read_parallel(out / "valid.source", out / "valid.target")}
    if old:
        texts["old"] = read_parallel(*old)
    for name, corpus in texts.items():
        before, after = (_bleu(out / file, corpus) for file in (START, "best.safetensors"))
        click.echo(f"{name}: BLEU {before:.2f} before, {after:.2f} after, {after - before:+.2f}")


def start_checkpoint(bundle: "Bundle", path: Path) -> "Recipe":
    """Writes a checkpoint with the weights of a bundle, and returns the recipe it was trained by.

    Raises ValueError where the bundle has no recipe, or its graphs don't name their weights.
    """
    import torch

    from dragoman_training.checkpoint import vocabulary_shape, write_checkpoint
    from dragoman_training.models import build_model
    from dragoman_training.recipe.reader import load_recipe

    recipe_path = bundle.path / RECIPE
    if not recipe_path.is_file():
        raise ValueError(f"{bundle.path} has no {RECIPE}: only a model that was trained here can be adapted")
    recipe = load_recipe(recipe_path)
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    if source.model == target.model:
        target = source
    model = build_model(recipe.model, vocabulary_shape(source, target))
    arrays = _weights(bundle)
    tensors = {}
    for name, parameter in model.named_parameters():
        if name not in arrays or arrays[name].shape != tuple(parameter.shape):
            raise ValueError(
                f"{bundle.path}: its graphs have no {name} as the model has it; train further from the "
                "checkpoint that it was exported of (training.start_from)"
            )
        tensors[f"model.{name}"] = torch.tensor(arrays[name])
    # A graph has there what keeps these tokens from being chosen.
    tensors["model.output.bias"][model.output.never.bool()] = 0
    write_checkpoint(path, recipe, (source, target), tensors, {})
    return recipe


def _weights(bundle: "Bundle") -> "dict[str, NDArray[np.float32]]":
    """By their names in a checkpoint. What rows are multiplied by is stored transposed."""
    import numpy as np
    import onnx
    from dragoman_bundle.manifest import ENCODER_GRAPH, STEP_GRAPH

    precision = next(each for each in ("fp32", "fp16", "int8") if each in bundle.manifest.precisions)
    stored: dict[str, NDArray[np.generic]] = {}
    for graph in (ENCODER_GRAPH, STEP_GRAPH):
        model = onnx.load(bundle.graph_path(precision, graph))
        stored |= {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    weights: dict[str, NDArray[np.float32]] = {}
    for name, array in stored.items():
        coded = re.fullmatch(r"(.*)\.(rows|columns)\.codes", name)
        if coded:
            scale = stored[f"{coded[1]}.{coded[2]}.scale"].astype(np.float32)
            by_rows = coded[2] == "rows"
            floats = array.astype(np.float32) * (scale[:, None] if by_rows else scale)
            weights[coded[1]] = np.ascontiguousarray(floats if by_rows else floats.T, np.float32)
        elif name.removesuffix(".rows") not in weights:
            is_product = array.ndim == 2 and name.endswith(".weight") and "embedding" not in name
            key = name.removesuffix(".rows")
            weights[key] = np.ascontiguousarray(array.T if is_product else array, np.float32)
    return weights


def _write_run(
    recipe: "Recipe", corpus: "Corpus", out: Path, *, held_out: int, epochs: int, rate: float
) -> None:
    """Parts the pairs, and writes a recipe that trains on them. Raises ValueError for too few."""
    from dragoman_export.bundle_files import recipe_toml
    from dragoman_training.data.corpus import hold_out
    from dragoman_training.data.files import write_parallel
    from dragoman_training.recipe.settings import CardConfig

    train, valid = hold_out(corpus, min(held_out, len(corpus) // 10))
    for name, pairs in (("valid", valid), ("train", train)):
        write_parallel(pairs, out / f"{name}.source", out / f"{name}.target")
    data = dataclasses.replace(
        recipe.data,
        train_source=("train.source",),
        train_target=("train.target",),
        valid_source=("valid.source",),
        valid_target=("valid.target",),
        train_weights=(),
    )
    training = dataclasses.replace(
        recipe.training,
        learning_rate=rate,
        warmup_steps=0,
        decay="linear",
        max_epochs=epochs,
        validate_every_epochs=1.0,
        start_from=START,
    )
    name = f"{recipe.name}-adapted"
    adapted = dataclasses.replace(recipe, name=name, data=data, training=training, card=CardConfig())
    (out / RECIPE).write_text(recipe_toml(adapted), encoding="utf-8")


def _bleu(checkpoint: Path, corpus: "Corpus") -> float:
    from sacrebleu.metrics.bleu import BLEU

    from dragoman_training.decoding.system import open_checkpoint_system

    with open_checkpoint_system(
        str(checkpoint),
        source_language=None,
        target_language=None,
        beam_size=5,
        device="auto",
        precision="auto",
    ) as system:
        return float(BLEU().corpus_score(system.translate(corpus.sources), [corpus.targets]).score)
