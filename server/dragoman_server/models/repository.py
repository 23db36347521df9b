"""The models that a server has, found by name or by languages.

Owns the folder models/NAME/VERSION. Must not know requests or gRPC.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path

from dragoman_bundle import Bundle, BundleError, Manifest, open_bundle, read_manifest
from dragoman_bundle.languages import tag_of_name
from dragoman_bundle.manifest import MANIFEST_FILE
from dragoman_bundle.writer import check_folder_name

from dragoman_server import engine
from dragoman_server.errors import ModelNotFoundError, list_names, quote
from dragoman_server.models.model import Model, RequestedModel, ServedModel

VersionKey = list[tuple[int, int, str]]

# Where letters sort before it and separators after; see _rank.
_END_OF_VERSION = (1, 0, "")
# What a bundle is left out for.
_REFUSED = (BundleError, engine.DecoderError, engine.PrecisionUnavailableError, engine.SentenceError)


def version_key(version: str) -> VersionKey:
    """The key that versions are sorted by.

    Letters after a number make a pre-release: 2-beta and 2rc1 come before 2.
    """
    return [*map(_rank, re.findall(r"\d+|\D+", version)), _END_OF_VERSION]


def _rank(part: str) -> tuple[int, int, str]:
    """The rank of a part of a version: letters, the version's end, separators, numbers."""
    if part.isdecimal():
        return 3, int(part), ""
    return (0 if any(map(str.isalpha, part)) else 2), 0, part


class RepositoryError(ValueError):
    """The models folder is missing, holds no bundle, or holds none that can be served."""

    def __init__(self, message: str, refused: Mapping[str, Exception] | None = None) -> None:
        super().__init__(message)
        self.refused = refused
        """The bundles that were refused, as a Repository has them; None where nobody knows."""


class Repository:
    """The models that are being served, and the bundles that were refused.

    The newest of several versions is the last in the order of `models`.
    """

    def __init__(self, models: Iterable[ServedModel], refused: Mapping[str, Exception]) -> None:
        self.models = sorted(
            models, key=lambda model: (model.manifest.name, version_key(model.manifest.version))
        )
        self.refused = dict(refused)
        """The reasons by "name/version", as their folders are called."""

    @property
    def languages(self) -> frozenset[str]:
        """The languages that models translate from or to."""
        manifests = (model.manifest for model in self.models)
        return frozenset(chain.from_iterable((*each.sources, *each.targets) for each in manifests))

    def by_name(self, name: str) -> ServedModel:
        """The model called "name/version", or the newest version of "name". Raises ModelNotFoundError."""
        found = [model for model in self.models if name in (model.key, model.manifest.name)]
        if not found:
            known = list_names([model.key for model in self.models])
            raise ModelNotFoundError(f"there is no model {quote(name)}; there are: {known}")
        return found[-1]

    def by_languages(self, source: str, target: str) -> RequestedModel:
        """The newest version of the first model, by name, for the languages or those closest to them.

        One of these alone goes before one of many. Raises ModelNotFoundError.
        """
        near = {
            model: (distance, bool(model.manifest.languages))
            for model in self.models
            if (distance := model.distance(source, target)) is not None
        }
        if not near:
            pairs = sorted(
                f"from any to any other of {list_names(sorted(model.manifest.sources))}"
                if model.manifest.languages
                else f"{model.manifest.sources[0]}-{model.manifest.targets[0]}".lower()
                for model in self.models
            )
            tags = {name: tag for name in (source, target) if (tag := tag_of_name(name))}
            advice = "".join(f'; the code of {quote(name)} is "{tag}"' for name, tag in tags.items())
            raise ModelNotFoundError(
                f"there is no model from {quote(source)} to {quote(target)}{advice}; "
                f"the pairs there are: {list_names(list(dict.fromkeys(pairs)))}"
            )
        found = [model for model, place in near.items() if place == min(near.values())]
        # Of those that are equally close, such as "en-GB" and "en-US" for "en", too.
        first_name = found[0].manifest.name
        return [model for model in found if model.manifest.name == first_name][-1].between(source, target)


def load_repository(
    folder: Path,
    load: Callable[[Bundle], Model],
    served: Repository,
    defer: Callable[[Path], ServedModel] | None = None,
) -> Repository:
    """Opens every bundle NAME/VERSION in `folder`, but for those that are `served` already.

    With `defer` none is opened: it looks at a bundle, as far as that costs next to nothing, and makes of it
    a model that is loaded when it is needed. One that is served and not loaded is looked at again, and
    replaced where its folder has changed.

    A bundle that does not check out, lacks the precision that `load` asks it for, takes longer sentences than
    its engine, or does not decode is left out, whatever is wrong with it: others are served all the same.
    What is served goes on as it is, as long as its folder is there; a folder that has changed is refused.
    Raises RepositoryError where no model is left, with each one's reason, and DeviceUnavailableError: that is
    no bundle's fault. No model that it loaded is running then.
    """
    if not folder.is_dir():
        why = "is no folder" if folder.exists() else "does not exist"
        raise RepositoryError(f"the models folder {folder} {why}: --models names the folder to serve")
    by_key = {model.key: model for model in served.models}
    unchanged: list[ServedModel] = []
    deferred: list[ServedModel] = []
    loaded: list[Model] = []
    refused: dict[str, Exception] = {}
    for path in _bundle_folders(folder, refused):
        key = f"{path.parent.name}/{path.name}"
        try:
            old = by_key.get(key)
            if old is not None and (defer is None or old.loaded is not None):
                unchanged.append(old)
                _check_unchanged(path, old)
            elif defer is not None:
                new = defer(path)
                check_folder_name(path, new.manifest)
                deferred.append(new if old is None or old.manifest != new.manifest else old)
            else:
                bundle = open_bundle(path)
                check_folder_name(path, bundle.manifest)
                loaded.append(load(bundle))
        except _REFUSED as error:
            refused[key] = error
        except BaseException as error:
            # A device that is not there, and being cancelled, are no bundle's fault.
            if isinstance(error, engine.DeviceUnavailableError) or not isinstance(error, Exception):
                for model in loaded:
                    model.engine.close()
                raise
            refused[key] = BundleError(f"{path} can't be served: {type(error).__name__}: {error}")
    # Nobody can tell what is in a folder that can't be read.
    unchanged += [model for model in served.models if model.manifest.name in refused]
    if not unchanged and not deferred and not loaded:
        if (folder / MANIFEST_FILE).is_file():
            raise RepositoryError(f"{folder} is one bundle, NAME/VERSION; {_way_up(folder, 2)}")
        if any(folder.glob(f"*/{MANIFEST_FILE}")):
            raise RepositoryError(f"{folder} holds one model's versions; {_way_up(folder, 1)}")
        reasons = "".join(f"\n  {key}: {error}" for key, error in refused.items())
        raise RepositoryError(
            f"no bundle in {folder} can be served:{reasons}"
            if refused
            else f"the models folder {folder} holds no bundle; export one to {folder}/NAME/VERSION",
            refused,
        )
    return Repository([*unchanged, *deferred, *loaded], refused)


def _way_up(folder: Path, num_levels: int) -> str:
    """Advice where the folder is so many levels below a models folder."""
    parents = folder.parents if len(folder.parents) > num_levels else folder.absolute().parents
    if len(parents) > num_levels:
        return f"give the folder above{' both' * (num_levels == 2)}: --models {parents[num_levels - 1]}"
    # As one mounted into a container, of which the names above are not seen.
    return f"it belongs at {folder}/{'NAME/VERSION' if num_levels == 2 else 'NAME'}"


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


def is_same(manifest: Manifest, other: Manifest) -> bool:
    """Whether both are of the same bundle, whatever quality was recorded meanwhile."""
    return manifest.without_quality() == other.without_quality()


def _check_unchanged(path: Path, model: ServedModel) -> None:
    """Raises BundleError where the folder holds another bundle than the one that is served."""
    if not is_same(read_manifest(path), model.manifest):
        change = f"{path} has changed, and {model.key} is served as it was"
        raise BundleError(f"{change}; export to a new version instead")
