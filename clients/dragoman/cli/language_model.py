"""The systems that `dragoman evaluate` measures without a source: language models, by their perplexity.

One registers as an entry point of the group `dragoman.language_models`, a function like `OpenLanguageModel`.
"""

from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from typing import Protocol

from dragoman.cli.failure import missing_extra


class LanguageModel(Protocol):
    """Says how likely a text is."""

    @property
    def description(self) -> str:
        """The description of the system for the report."""

    def perplexity(self, lines: list[str]) -> tuple[float, int, int]:
        """Perplexity a token of some sentences, how many tokens they have, ends included, and how many
        sentences that was: one of which the vocabulary knows nothing is left out.

        Raises ValueError where none is left.
        """


class OpenLanguageModel(Protocol):
    """Opens a language model, and closes it after the `with` block. Raises ValueError for anything else."""

    def __call__(self, location: str, *, device: str) -> AbstractContextManager[LanguageModel]: ...


def open_language_model(location: str, *, device: str) -> AbstractContextManager[LanguageModel]:
    """The language model of a checkpoint. Raises ClickException where its extra is not installed."""
    (entry_point,) = entry_points(group="dragoman.language_models", name="checkpoint")
    try:
        opener: OpenLanguageModel = entry_point.load()
    except ModuleNotFoundError as error:
        raise missing_extra("--checkpoint", entry_point, error) from error
    return opener(location, device=device)
