"""The toolkits beside the engine: how to install each, what to tell it, in which settings to run it."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.environment import make_environment
from benchmarks.machine import describe_machine
from benchmarks.train.joeynmt import install

LEFT_OUT = {
    "opennmt-py": "its release 3.5.1 asks for torch >=2.1,<2.3, and this project is tested with 2.13.0",
}
"""Toolkits that cannot be run here, and why."""


@dataclass(frozen=True, kw_only=True)
class Toolkit:
    """A peer."""

    name: str
    install: Callable[[], Path]
    """Installs it where that is not done yet; returns its Python. Raises PeerMissingError."""
    sizes: Mapping[str, object]
    """Sizes of its model, beside the vocabulary."""
    settings: Sequence[Mapping[str, object]]
    """The settings to try; the fastest counts."""
    environment: Mapping[str, str]
    """Environment variables."""

    @property
    def script(self) -> Path:
        """What its Python runs."""
        return Path(__file__).with_name(f"{self.name}_worker.py")


LSTM_SIZES = {
    "embedding_size": 256,
    "encoder_layers": 2,
    "encoder_units": 256,
    "decoder_layers": 1,
    "decoder_units": 512,
}
"""Of an LSTM with attention, where the bundle's own model has none such: those of multi30k-luong.toml."""


def ctranslate2(*, bundle: Path, beam: int, threads: int) -> Toolkit:
    """CTranslate2, a Transformer of 3+3 layers and width 256: several workers, or several threads of one."""
    shares = {(threads, 1), (1, threads)}
    return Toolkit(
        name="ctranslate2",
        install=partial(make_environment, "ctranslate2", ("ctranslate2==4.8.5",)),
        sizes={"layers": 3, "width": 256},
        settings=[
            {"beam": beam, "workers": workers, "threads_per_worker": each, "batch": batch}
            for workers, each in sorted(shares, reverse=True)
            for batch in (4, 8, 16, 32)
        ],
        environment=fastest_instructions(),
    )


def fastest_instructions() -> dict[str, str]:
    """What CTranslate2 is told of the processor: it chooses AVX2 by itself on some that have more."""
    flags = describe_machine(())["flags"]
    assert isinstance(flags, list)
    return {"CT2_FORCE_CPU_ISA": "AVX512"} if "avx512f" in flags else {}


def joeynmt(*, bundle: Path, beam: int, threads: int) -> Toolkit:
    """JoeyNMT with an LSTM and Luong attention, of the sizes that the bundle's recipe has."""
    return Toolkit(
        name="joeynmt",
        install=install,
        sizes=lstm_sizes(bundle),
        settings=[{"beam": beam, "threads": threads, "batch": 64}],
        environment={},
    )


def lstm_sizes(bundle: Path) -> dict[str, int]:
    """The sizes of the bundle's model, as far as it has them, and LSTM_SIZES for the others."""
    recipe = bundle / "recipe.toml"
    model = tomllib.loads(recipe.read_text(encoding="utf-8"))["model"] if recipe.exists() else {}
    return {name: model.get(name, size) for name, size in LSTM_SIZES.items()}


TOOLKITS = {"ctranslate2": ctranslate2, "joeynmt": joeynmt}
"""By name."""
