"""The engine that an actor of Ray has in its own process.

It comes from the server's package, which registers it as an entry point: this one never imports that.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal, Protocol

from dragoman.settings import Segmentation

GROUP = "dragoman.engines"
"""Where engines are registered."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How each actor opens the bundle, and translates."""

    beam_size: int | None = None
    """Hypotheses kept while searching; None: the bundle's."""
    length_penalty: float | None = None
    """Exponent of the length penalty; None: the bundle's."""
    segmentation: Segmentation = "sentence"
    """The units of translation: sentences, or whole lines."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where its graphs run: on a core of its own, or on a GPU."""
    precision: Literal["auto", "fp32", "int8", "fp16"] = "auto"
    """Which of the bundle's graphs run."""


class Translator(Protocol):
    """Translates texts."""

    def translate(self, texts: Sequence[str]) -> Sequence[tuple[str, bool]]:
        """For each text its translation, and whether that lacks an end."""


class OpenTranslator(Protocol):
    """Opens a bundle, and closes it after the `with` block."""

    def __call__(
        self,
        location: str,
        *,
        beam_size: int | None,
        length_penalty: float | None,
        segmentation: str,
        device: str,
        precision: str,
    ) -> AbstractContextManager[Translator]: ...


class Engine:
    """Opened once in an actor's life, and never closed: it ends with the actor's process."""

    def __init__(self, bundle: str, options: EngineOptions) -> None:
        """Raises ModuleNotFoundError where the machine has no engine installed, and what opening raises."""
        found = next(iter(entry_points(group=GROUP, name="bundle")), None)
        if found is None:
            raise ModuleNotFoundError(
                "no engine is installed where this actor runs; it needs the extras ray and server-cpu, "
                "or ray and server for a GPU"
            )
        open_translator: OpenTranslator = found.load()
        self._opened = open_translator(
            bundle,
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            segmentation=options.segmentation,
            device=options.device,
            precision=options.precision,
        )
        self._translator = self._opened.__enter__()

    def translate(self, texts: Sequence[str | None]) -> list[tuple[str | None, bool]]:
        """For each text its translation, and whether that lacks an end; None of None."""
        answers = iter(self._translator.translate([text for text in texts if text is not None]))
        return [(None, False) if text is None else next(answers) for text in texts]
