"""The systems that `dragoman evaluate` measures.

One asks a server. Those of other packages register as entry points of the group `dragoman.systems`:
functions like `open_server`, which open anything that translates lines. Models of one language, which have a
perplexity, are of the group `dragoman.language_models`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from dragoman.cli.options import open_client
from dragoman.client import Client
from dragoman.messages import TEXTS_PER_MESSAGE
from dragoman.settings import Settings


class System(Protocol):
    """Translates lines, each as one unit; what is too long for it, it splits, or warns that it does not."""

    @property
    def description(self) -> str:
        """The description of the system for the report."""

    @property
    def details(self) -> Mapping[str, str | float | None]:
        """The known ones of `dragoman.cli.evaluate.DETAILS`."""

    def translate(self, lines: list[str]) -> list[str]:
        """Translates each line, in order."""


OpenSystem = Callable[..., AbstractContextManager[System]]
"""Opens a system as `open_server` does, and closes it after the `with` block. Raises ValueError for what it
cannot be. There is one location; only checkpoints may be several, which are an ensemble then."""


@dataclass
class ServerSystem:
    """A server's model: the one of the first translation, whatever the server would choose meanwhile."""

    client: Client
    settings: Settings
    location: str

    @property
    def description(self) -> str:
        """The server, and the model once one has translated."""
        model = self.settings.model
        return f"server {self.location}" + (f", model {model}" if model else "")

    @property
    def details(self) -> Mapping[str, str | float | None]:
        """The settings of the client's calls, for the report."""
        return {"bundle": self.settings.model, "length_penalty": self.settings.length_penalty}

    def translate(self, lines: list[str]) -> list[str]:
        """Raises DragomanError."""
        results = self.client.translate_stream(
            enumerate(lines), **asdict(self.settings), in_order=True, texts_per_message=TEXTS_PER_MESSAGE
        )
        texts = []
        with closing(results):
            for result in results:
                if result.translation is None:
                    assert result.error is not None
                    raise result.error
                self.settings = replace(self.settings, model=str(result.translation.model))
                texts.append(result.translation.text)
        return texts


@contextmanager
def open_server(
    location: str,
    *,
    source_language: str | None,
    target_language: str | None,
    beam_size: int,
    length_penalty: float | None = None,
    device: str,
    precision: str,
    shortlist: bool | None,
    model: str | None = None,
) -> Iterator[ServerSystem]:
    """The server at HOST:PORT. Raises ValueError without languages, or for what is not up to a client."""
    if source_language is None or target_language is None:
        raise ValueError("a server needs to be told the languages: --from de --to en")
    if (device, precision, shortlist) != ("auto", "auto", None):
        raise ValueError("--device, --precision and --shortlist are chosen where the server is started")
    settings = Settings(
        source=source_language,
        target=target_language,
        model=model,
        beam_size=beam_size,
        length_penalty=length_penalty,
        length_policy="split",
        segmentation="line",
    )
    with open_client(location, timeout_seconds=None) as client:
        yield ServerSystem(client, settings, location)
