"""JoeyNMT (Kreutzer et al. 2019) at the same task, in an environment of its own."""

import json
import os
import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import sentencepiece

from benchmarks.environment import make_environment
from benchmarks.train.shape import Material, Shape, Timing
from dragoman_training.data.corpus import read_lines

# torch comes first, and again beside JoeyNMT: no other release may be tried. JoeyNMT imports
# importlib_metadata without asking for it, and calls what later versions of sentencepiece lack.
INSTALLS = (
    ("torch==2.13.0",),
    ("torch==2.13.0", "joeynmt==2.3.0", "setuptools<81", "importlib_metadata", "sentencepiece==0.2.0"),
)


def install() -> Path:
    """Installs it where that is not done yet; returns its Python. Raises PeerMissingError."""
    return make_environment("joeynmt", *INSTALLS)


def measure(python: Path, shape: Shape, material: Material, *, sorts: bool) -> Timing:
    """One run, timed by JoeyNMT's own log. Raises ClickException where it fails.

    It makes batches of pairs as they come. With `sorts` they come in an order of which that makes batches of
    one length, as ours are.
    """
    folder = material.folder / "joeynmt"
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocabulary.txt"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(material.tokenizer))
    if sorts:
        material = _sorted(material, processor, folder, shape.batch_tokens)
    pieces = [processor.id_to_piece(number) for number in range(processor.vocab_size())]
    special = {processor.id_to_piece(number) for number in range(4)}
    vocabulary.write_text("".join(f"{piece}\n" for piece in pieces if piece not in special))
    config = folder / "config.yaml"
    # JSON is YAML.
    config.write_text(json.dumps(config_of(shape, material, folder, vocabulary, shuffles=not sorts)))
    done = subprocess.run(
        [str(python), "-m", "joeynmt", "train", str(config), "--skip-test"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": str(material.threads)},
        cwd=folder,
    )
    return read_log(done.stdout + done.stderr)


def read_log(log: str) -> Timing:
    """What JoeyNMT said of its second stretch of steps; the first is warm-up. Raises ClickException."""
    speeds = re.findall(r"Tokens per Sec:\s*([\d.]+)", log)
    parameters = re.search(r"Total params: (\d+)", log)
    if len(speeds) < 2 or parameters is None:
        raise click.ClickException(f"JoeyNMT did not train as asked; it said:\n{log[-3000:]}")
    return Timing(tokens_per_second=float(speeds[1]), parameters=int(parameters[1]))


def _sorted(
    material: Material, processor: sentencepiece.SentencePieceProcessor, folder: Path, batch_tokens: int
) -> Material:
    """The material with its pairs in batches of one length, batches in random order."""
    files = material.train_source, material.train_target
    sides = [read_lines(file) for file in files]
    lengths = [
        max(len(source), len(target)) + 1
        for source, target in zip(*(processor.encode(side) for side in sides), strict=True)
    ]
    batches = batches_of_one_length(lengths, batch_tokens)
    random.Random(1).shuffle(batches)
    written = [folder / f"sorted{file.suffix}" for file in files]
    for side, file in zip(sides, written, strict=True):
        file.write_text("".join(f"{side[n]}\n" for batch in batches for n in batch), encoding="utf-8")
    return replace(material, train_source=written[0], train_target=written[1])


def batches_of_one_length(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Numbers of pairs of these lengths, cut as JoeyNMT's `TokenBatchSampler` cuts what it is given: a batch
    is full once its padded tokens are at least `batch_tokens`. What is left over makes none.
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        batch.append(number)
        if lengths[number] * len(batch) >= batch_tokens:
            batches.append(batch)
            batch = []
    return batches


def config_of(
    shape: Shape, material: Material, folder: Path, vocabulary: Path, *, shuffles: bool
) -> dict[str, object]:
    """JoeyNMT's configuration for the same model and files. Raises ValueError for what it can't time."""
    if material.warmup_steps != material.steps:
        raise ValueError("JoeyNMT logs at equal distances: warm-up and timed steps must be as many")
    side = {
        "max_length": 100,
        "level": "bpe",
        "voc_file": str(vocabulary),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(material.tokenizer.absolute())},
    }
    embeddings = {"embedding_dim": shape.embedding_size, "scale": False, "dropout": shape.dropout}
    layer = {"type": "recurrent", "rnn_type": "lstm", "embeddings": embeddings, "dropout": shape.dropout}
    return {
        "name": "benchmark",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(material.train_source.with_suffix("").absolute()),
            "dev": str(material.valid_source.with_suffix("").absolute()),
            "dataset_type": "plain",
            "src": {"lang": material.train_source.suffix[1:], **side},
            "trg": {"lang": material.train_target.suffix[1:], **side},
        },
        "testing": {"beam_size": 1, "eval_metrics": ["bleu"]},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "normalization": "tokens",
            "learning_rate": 0.0005,
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 400,
            "clip_grad_norm": 1.0,
            "label_smoothing": shape.label_smoothing,
            "batch_type": "token",
            "batch_size": shape.batch_tokens,
            "shuffle": shuffles,
            "epochs": 100,
            "updates": 2 * material.steps,
            "logging_freq": material.steps,
            "validation_freq": 1000 * material.steps,
            "overwrite": True,
        },
        "model": {
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {
                **layer,
                "hidden_size": shape.encoder_units,
                "bidirectional": True,
                "num_layers": shape.encoder_layers,
            },
            "decoder": {
                **layer,
                "hidden_size": shape.decoder_units,
                "hidden_dropout": shape.dropout,
                "num_layers": shape.decoder_layers,
                "input_feeding": True,
                "init_hidden": "bridge",
                "attention": "luong",
            },
        },
    }
