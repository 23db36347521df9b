"""The models that a server has: one bundle and one engine each, found by name or by languages.

Owns the folder models/NAME/VERSION and the order of versions. Must not know requests or gRPC.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_bundle import Bundle, BundleError, open_bundle, read_manifest
from dragoman_server.engine import (
    DecoderError,
    DeviceUnavailableError,
    EnginePool,
    PrecisionUnavailableError,
    Priority,
    SentenceError,
)
from dragoman_server.errors import ModelNotFoundError
from dragoman_server.metrics import ModelMetrics
from dragoman_server.occupancy import Occupancy
from dragoman_server.quoting import list_names, quote

# Where letters sort before it and separators after; see _rank.
_END_OF_VERSION = (1, 0, "")


class RepositoryError(ValueError):
    """The models folder is missing, holds no bundle, or holds none that can be served."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A model that is being served."""

    bundle: Bundle
    """What it was loaded from."""
    engine: EnginePool
    """What decodes its sentences."""
    metrics: ModelMetrics
    """Its own series."""
    precision: str
    """Of the graphs in use."""
    providers: Mapping[str, str]
    """By graph the execution provider it runs on."""
    default_beam_size: int
    """Of a request that sets none."""
    max_sentences: Mapping[Priority, int]
    """Most sentences of a request that the engine's queue can ever hold."""
    turns: Mapping[Priority, asyncio.Lock] = field(
        default_factory=lambda: {priority: asyncio.Lock() for priority in Priority}
    )
    """Held by the stream's item that waits for room in the queue: the first to come is the next to get in,
    however many sentences it has and however few those behind it."""
    calls: Occupancy = field(default_factory=Occupancy)
    """Those that use it, a stream for as long as it lasts."""

    @property
    def key(self) -> str:
        """ "name/version"."""
        return f"{self.bundle.manifest.name}/{self.bundle.manifest.version}"

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target, in lower case."""
        manifest = self.bundle.manifest
        return manifest.source_language.lower(), manifest.target_language.lower()


class Repository:
    """The models that are being served, and the bundles that were refused.

    The newest of several versions is the last in the order of `models`.
    """

    def __init__(self, models: Iterable[Model], refused: Mapping[str, Exception]) -> None:
        self.models = sorted(models, key=_order)
        """By name and version."""
        self.refused = dict(refused)
        """By "name/version", as their folders are called: why."""

    def by_name(self, name: str) -> Model:
        """The model called "name/version", or the newest version of "name". Raises ModelNotFoundError."""
        found = [model for model in self.models if name in (model.key, model.bundle.manifest.name)]
        if not found:
            known = list_names([model.key for model in self.models])
            raise ModelNotFoundError(f"there is no model {quote(name)}; there are: {known}")
        return found[-1]

    def by_languages(self, source: str, target: str) -> Model:
        """The newest version of the first model, by name, for the languages. Raises ModelNotFoundError."""
        pair = (source.lower(), target.lower())
        found = [model for model in self.models if model.languages == pair]
        if not found:
            pairs = sorted({"-".join(model.languages) for model in self.models})
            raise ModelNotFoundError(
                f"there is no model from {quote(source)} to {quote(target)}; "
                f"the pairs there are: {list_names(pairs)}"
            )
        first_name = found[0].bundle.manifest.name
        return [model for model in found if model.bundle.manifest.name == first_name][-1]


def load_repository(folder: Path, load: Callable[[Bundle], Model], served: Repository) -> Repository:
    """Opens every bundle NAME/VERSION in `folder`, but for those that are `served` already.

    A bundle that does not check out, lacks the precision that `load` asks it for, takes longer sentences than
    its engine, or does not decode is left out, whatever is wrong with it: others are served all the same.
    What is served goes on as it is, as long as its folder is there; a folder that has changed is refused.
    Raises RepositoryError where no model is left, with each one's reason, and DeviceUnavailableError: that is
    no bundle's fault. No model that it loaded is running then.
    """
    if not folder.is_dir():
        raise RepositoryError(f"the models folder {folder} does not exist")
    by_key = {model.key: model for model in served.models}
    kept: list[Model] = []
    loaded: list[Model] = []
    refused: dict[str, Exception] = {}
    for path in _bundle_folders(folder, refused):
        key = f"{path.parent.name}/{path.name}"
        try:
            if key in by_key:
                kept.append(by_key[key])
                _check_unchanged(path, by_key[key])
            else:
                loaded.append(load(_open(path, key)))
        except (BundleError, DecoderError, PrecisionUnavailableError, SentenceError) as error:
            refused[key] = error
        except BaseException as error:
            # A device that is not there, and being cancelled, are no bundle's fault.
            if isinstance(error, DeviceUnavailableError) or not isinstance(error, Exception):
                for model in loaded:
                    model.engine.close()
                raise
            refused[key] = BundleError(f"{path} can't be served: {type(error).__name__}: {error}")
    # Nobody can tell what is in a folder that can't be read.
    kept += [model for model in served.models if model.bundle.manifest.name in refused]
    if not kept and not loaded:
        reasons = "".join(f"\n  {key}: {error}" for key, error in refused.items())
        raise RepositoryError(
            f"no bundle in {folder} can be served:{reasons}"
            if refused
            else f"the models folder {folder} holds no bundle; export one to {folder}/NAME/VERSION"
        )
    return Repository([*kept, *loaded], refused)


def _bundle_folders(folder: Path, refused: dict[str, Exception]) -> list[Path]:
    """Every NAME/VERSION, in order; a NAME that can't be read is refused.

    Raises RepositoryError for a models folder that can't be read.
    """
    try:
        named = _folders(folder)
    except OSError as error:
        raise RepositoryError(f"the models folder {folder} can't be read: {error.strerror}") from error
    found: list[Path] = []
    for path in named:
        try:
            found += _folders(path)
        except OSError as error:
            refused[path.name] = BundleError(f"{path} can't be read: {error.strerror}")
    return found


def _folders(folder: Path) -> list[Path]:
    """Raises OSError where it can't be read."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    return [folder / name for name in sorted(names)]


def _open(path: Path, key: str) -> Bundle:
    bundle = open_bundle(path)
    named = f"{bundle.manifest.name}/{bundle.manifest.version}"
    if named != key:
        raise BundleError(f"{path}: its manifest calls it {named}; its folder must be called so too")
    return bundle


def _check_unchanged(path: Path, model: Model) -> None:
    """Raises BundleError where the folder holds another bundle than the one that is served."""
    if read_manifest(path) != model.bundle.manifest:
        raise BundleError(
            f"{path} has changed, and {model.key} is served as it was; export to a new version instead"
        )


def _order(model: Model) -> tuple[str, list[tuple[int, int, str]]]:
    """By name, then by version with numbers as numbers: 2 before 10, 1.9 before 1.10.

    Letters after a number make a pre-release: 2-beta and 2rc1 come before 2.
    """
    parts = re.findall(r"\d+|\D+", model.bundle.manifest.version)
    return model.bundle.manifest.name, [*map(_rank, parts), _END_OF_VERSION]


def _rank(part: str) -> tuple[int, int, str]:
    """Of a part of a version: letters, the version's end, separators, numbers."""
    if part.isdigit():
        return 3, int(part), ""
    return (0 if any(map(str.isalpha, part)) else 2), 0, part
