"""What all tests share: a small language pair that can be learned in seconds, and a model that has."""

import os
import random
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from tests.once import kept_folder, once, shared_folder

# One thread: small matrices gain nothing from more, and the numbers do not depend on how many there are.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Where much else runs, an example takes as long as it takes.
settings.register_profile("some", deadline=None, max_examples=30)
settings.register_profile("many", deadline=None, max_examples=200)
# Where the tests run in the background, Ctrl-C is ignored by them and all they start, unless told otherwise.
signal.signal(signal.SIGINT, signal.default_int_handler)

FIRST = ("e2e/test_whole_path.py", "benchmarks", "e2e", "training", "export", "engine", "server", "clients")
"""Tests that begin: first those that train the toy, while nobody waits for it, then folders of long files."""
TOGETHER = ("benchmarks", "export/foreign")
"""Folders that one worker has: transformers, which makes other people's checkpoints, is slow to import."""

WORDS = {
    "ein": "a", "der": "the", "mann": "man", "hund": "dog", "vogel": "bird", "fisch": "fish",
    "alter": "old", "junger": "young", "roter": "red", "kleiner": "small", "sieht": "sees", "ruft": "calls",
    "sucht": "seeks", "findet": "finds", "heute": "today", "morgen": "tomorrow", "nie": "never",
    "oft": "often",
}  # fmt: skip


def toy_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Sentences of a tiny German and their English; adverbs move to the front, adjectives repeat."""
    generator = random.Random(seed)
    words = list(WORDS)

    def noun_phrase() -> list[str]:
        adjectives = generator.choices(words[6:10], k=generator.choice([0, 0, 1, 1, 2]))
        return [generator.choice(words[:2]), *adjectives, generator.choice(words[2:6])]

    pairs = []
    for _ in range(count):
        clause = [*noun_phrase(), generator.choice(words[10:14]), *noun_phrase()]
        adverb = generator.sample(words[14:], k=generator.choice([0, 1]))
        source = " ".join([*clause, *adverb]) + "."
        target = " ".join(WORDS[word] for word in [*adverb, *clause]) + "."
        pairs.append((source, target))
    return pairs


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of long tests alone isn't imported where they are left out: what it imports takes seconds."""
    if config.option.markexpr != "not long" or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.long\n" in collection_path.read_text() or None


def is_for_long(config: pytest.Config) -> bool:
    """Whether it is `make test-long`, which tries properties with many examples."""
    return bool(config.option.markexpr == "long")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Half as many again: tests wait for processes, timers and each other, and that leaves a core idle."""
    return (yield) * 3 // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What lasts comes first, so that no worker ends with it alone."""
    folder = Path(__file__).parent

    def rank(item: pytest.Item) -> int:
        place = item.path.relative_to(folder)
        return min(
            FIRST.index(name) if name in FIRST else len(FIRST) for name in (str(place), place.parts[0])
        )

    items.sort(key=rank)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("many" if is_for_long(config) else "some")


def pytest_runtest_teardown() -> None:
    """A command that a test runs in its own process sets threads for all that come after."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keeps together, where tests run in several processes, those that share what is slow to make."""
    place = item.path.relative_to(Path(__file__).parent)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    group = next((name for name in TOGETHER if place.is_relative_to(name)), str(place))
    if "checkpoint" in parameters and group not in TOGETHER:
        group = f"{place.parts[0]} {parameters['checkpoint']}"
    item.add_marker(pytest.mark.xdist_group(group))
    if is_for_long(item.config) and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy corpus, a recipe `toy.toml` that learns it in seconds, and `lm.toml` of a language model."""
    folder = tmp_path_factory.mktemp("toy")
    for split, count, seed in (("train", 3000, 1), ("valid", 60, 2), ("test", 60, 3)):
        pairs = toy_pairs(count, seed)
        (folder / f"{split}.de").write_text("".join(f"{source}\n" for source, _ in pairs))
        (folder / f"{split}.en").write_text("".join(f"{target}\n" for _, target in pairs))
    (folder / "toy.toml").write_text(
        """
name = "toy"
[data]
source_language = "de"
target_language = "en"
train_source = "train.de"
train_target = "train.en"
valid_source = "valid.de"
valid_target = "valid.en"
[vocabulary]
size = 150
model_type = "bpe"
[model]
family = "luong"
embedding_size = 48
encoder_layers = 1
encoder_units = 48
decoder_units = 64
dropout = 0.1
[training]
batch_tokens = 300
max_epochs = 4
learning_rate = 5e-3
warmup_steps = 40
threads = 1
decay = "linear"
ema_decay = 0.98
precision = "fp32"
validate_every_epochs = 2
[decoding]
beam_size = 4
[card]
licence = "CC0-1.0"
data = "Sentences made by a test"
credit = "Nobody"
"""
    )
    (folder / "lm.toml").write_text(
        """
name = "toy-lm"
[data]
target_language = "en"
train_target = "train.en"
valid_target = "valid.en"
[vocabulary]
size = 100
model_type = "bpe"
[model]
family = "lm"
embedding_size = 32
layers = 1
units = 32
attention_units = 16
span = 4
dropout = 0.1
[training]
batch_tokens = 600
max_epochs = 2
learning_rate = 5e-3
warmup_steps = 20
threads = 1
label_smoothing = 0.0
ema_decay = 0.9
precision = "fp32"
early_stopping = "loss"
[decoding]
max_output_tokens = 20
"""
    )
    return folder


def trained(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run of the recipe; what the command said lies beside it, in `said`."""
    from click.testing import CliRunner

    from dragoman_training.cli import train

    def make(folder: Path) -> None:
        result = CliRunner().invoke(train, [str(recipe), "--out", str(folder)])
        assert result.exit_code == 0, result.output
        (folder / "said").write_text(result.output)

    return once(shared_folder(tmp_path_factory) / f"{recipe.stem}-run", make) / "best.safetensors"


@pytest.fixture(scope="session")
def toy_checkpoint(toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a model that has learned the toy corpus."""
    return trained(toy_folder / "toy.toml", tmp_path_factory)


@pytest.fixture(scope="session")
def toy_lm(toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a language model of the toy corpus' English."""
    return trained(toy_folder / "lm.toml", tmp_path_factory)


@pytest.fixture(scope="session")
def remembered_traces() -> Iterator[None]:
    """Exporting traces no model that another test had traced since models and graphs are what they are."""
    from tests.export.remembered_traces import RememberedTraces
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    from dragoman_export import trained

    with pytest.MonkeyPatch.context() as patch:
        # It parses all of torchlib's functions, twice a trace.
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        code = [f"export/dragoman_export/{name}" for name in ("graphs", "int8", "reference")]
        kept = kept_folder("traces", *code, "training/dragoman_training/models")
        patch.setattr(trained, "trace", RememberedTraces(kept))
        yield


@pytest.fixture(scope="session")
def toy_models(
    remembered_traces: None, toy_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder of bundles with that model, exported in fp32 and int8, as toy/1."""
    from click.testing import CliRunner

    from dragoman_export.cli import export

    def make(folder: Path) -> None:
        result = CliRunner().invoke(
            export, [str(toy_checkpoint), "--out", str(folder / "toy" / "1"), "--no-shortlist"]
        )
        assert result.exit_code == 0, result.output

    return once(shared_folder(tmp_path_factory) / "toy-models", make)
