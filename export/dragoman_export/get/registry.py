"""Registries of models: what each offers for a pair of languages, and where the files lie.

Owns the hosts and the form of every index; no other module names a host. What an index says is a stranger's
word: it is checked here before anything is made of it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

Read = Callable[[str], bytes]
"""Gives what lies at an address, of an index. Raises DownloadError."""
PAIR = re.compile(r"(?P<source>[a-z]{2,3}(?:-[A-Z]\w{1,3})?)-(?P<target>[a-z]{2,3}(?:-[A-Z]\w{1,3})?)")
"""Two languages, such as de-en or en-zh-Hans."""
_PAIR_AT_END = re.compile(rf"(?:^|[-/])({PAIR.pattern})$")
OFFER_FILE = "offer.json"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_OPUS = "Helsinki-NLP"


class RegistryError(ValueError):
    """There is no such model, or an index is not what it should be."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """The place of a registry."""

    index: str
    files: str = ""
    """Where its files lie, with a slash at the end; "" where the index says it."""


ADDRESSES = {
    "firefox": Address(
        index="https://firefox.settings.services.mozilla.com/v1/buckets/main/collections/"
        "translations-models-v2/records",
        files="https://firefox-settings-attachments.cdn.mozilla.net/",
    ),
    "hf": Address(index="https://huggingface.co"),
    "argos": Address(index="https://raw.githubusercontent.com/argosopentech/argospm-index/main/index.json"),
}
"""The addresses by registry, the best for a CPU first."""


def mirrored(base: str) -> dict[str, Address]:
    """The places of the registries in a mirror, which has each under its name."""
    base = base.rstrip("/")
    return {
        "firefox": Address(index=f"{base}/firefox/records", files=f"{base}/firefox/"),
        "hf": Address(index=f"{base}/hf"),
        "argos": Address(index=f"{base}/argos/index.json", files=f"{base}/argos/"),
    }


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file of a model."""

    name: str
    url: str
    size: int | None = None
    """Bytes that travel."""
    sha256: str = ""
    """The digest of what travels; "" where the registry has none."""
    git_sha1: str = ""
    """Git's name of it, likewise."""
    unpacked_size: int | None = None
    """Bytes of the file itself, where it travels in Zstandard's form."""
    unpacked_sha256: str = ""

    def __post_init__(self) -> None:
        """Raises RegistryError for what could not be a file's name, or is no address."""
        if not _FILE_NAME.fullmatch(self.name):
            raise RegistryError(f"{self.name!r:.80} is no name of a file")
        if not self.url.startswith(("https://", "http://")):
            raise RegistryError(f"{self.url!r:.200} is no address of a file: it begins with https://")


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A model that a registry has."""

    registry: str
    name: str
    source: str
    target: str
    """Languages; "" where only its files say."""
    version: str
    files: tuple[RemoteFile, ...]
    licence: str = ""
    credit: str = ""
    quality: str = ""
    """What its makers say of it; "" where they say nothing."""

    @property
    def spec(self) -> str:
        """What `dragoman get` takes for it."""
        return f"{self.registry}:{self.name}"

    @property
    def size(self) -> int | None:
        """Bytes to download; None where the registry does not say."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if sizes and len(sizes) == len(self.files) else None

    @property
    def folder(self) -> str:
        """Where it lies among downloads."""
        return f"{self.registry}/{self.name.replace('/', '--')}-{self.version}"

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def of_json(cls, text: bytes) -> "Offer":
        """Raises ValueError, KeyError or TypeError for what `to_json` has not written."""
        entry = json.loads(text)
        return cls(**{**entry, "files": tuple(RemoteFile(**file) for file in entry["files"])})


def pair_of(name: str) -> tuple[str, str] | None:
    """The languages that a name ends in, as opus-mt-de-en does."""
    found = _PAIR_AT_END.search(name)
    return None if found is None else (found["source"], found["target"])


def offer_of(registry: str, name: str, address: Address, read: Read) -> Offer:
    """The model of that name. Raises RegistryError where there is none, and DownloadError."""
    if registry == "hf":
        return _hub_offer(name, address)
    pair = PAIR.fullmatch(name)
    if pair is None:
        raise RegistryError(f"{registry}:{name} names no pair of languages, such as {registry}:de-en")
    found = list(offers(registry, address, read, pair["source"], pair["target"]))
    if not found:
        raise RegistryError(f"{registry} has no model from {pair['source']} to {pair['target']}")
    return found[0]


def offers(registry: str, address: Address, read: Read, source: str, target: str) -> Iterator[Offer]:
    """All of the languages; "" stands for any. Raises RegistryError and DownloadError."""
    return _OFFERS[registry](address, read, source, target)


def kept_offers(folder: Path) -> list[Offer]:
    """Those whose files lie in a folder of downloads. Raises RegistryError."""
    found = []
    for path in sorted(folder.glob(f"*/*/{OFFER_FILE}")):
        try:
            found.append(Offer.of_json(path.read_bytes()))
        except (ValueError, KeyError, TypeError) as error:
            raise RegistryError(f"{path} is damaged ({error}); remove its folder") from error
    return sorted(found, key=lambda offer: list(ADDRESSES).index(offer.registry))


class _FirefoxSet(NamedTuple):
    """What the files of one model share; the last in order is the best: for every Firefox, the newest."""

    source: str
    target: str
    is_for_all: bool
    numbers: tuple[int, ...]
    version: str
    architecture: str


def _firefox(address: Address, read: Read, source: str, target: str) -> Iterator[Offer]:
    """Mozilla's records for Firefox: one for each file, with the pair, a version and an attachment."""
    sets: dict[_FirefoxSet, dict[str, RemoteFile]] = defaultdict(dict)
    for entry in _entries(address.index, "data", read):
        record = _firefox_file(entry, address)
        if record and source in ("", record[0].source) and target in ("", record[0].target):
            model, kind, file = record
            sets[model][kind] = file
    best: dict[tuple[str, str], Offer] = {}
    for model in sorted(sets):
        files, pair = sets[model], (model.source, model.target)
        if "model" not in files or not ("vocab" in files or {"srcvocab", "trgvocab"} <= files.keys()):
            continue
        kinds = ("model", *(("vocab",) if "vocab" in files else ("srcvocab", "trgvocab")), "lex")
        version = f"{model.version}-{model.architecture}" if model.architecture else model.version
        best[pair] = Offer(
            registry="firefox",
            name="-".join(pair),
            source=model.source,
            target=model.target,
            version=f"{version}-firefox",
            files=tuple(files[kind] for kind in kinds if kind in files),
            licence="MPL-2.0",
            credit="Mozilla and the makers of Firefox Translations",
        )
    yield from best.values()


def _firefox_file(entry: Mapping[str, Any], address: Address) -> tuple[_FirefoxSet, str, RemoteFile] | None:
    """A file, its kind and its model; None for a record of something else, or a version before release."""
    attachment = entry.get("attachment")
    values = [entry.get(key) for key in ("name", "fileType", "sourceLanguage", "targetLanguage", "version")]
    if not isinstance(attachment, dict) or not all(isinstance(value, str) for value in values):
        return None
    name, kind, source, target, version = map(str, values)
    location = attachment.get("location")
    is_named = PAIR.fullmatch(f"{source}-{target}") and re.fullmatch(r"\d+(\.\d+)+", version)
    if not is_named or not isinstance(location, str):
        return None
    is_packed = location.endswith(".zst")
    file = RemoteFile(
        name=name,
        url=address.files + location.lstrip("/"),
        size=_number(attachment.get("size")),
        sha256=_text(attachment.get("hash")),
        unpacked_size=_number(entry.get("decompressedSize")) if is_packed else None,
        unpacked_sha256=_text(entry.get("decompressedHash")) if is_packed else "",
    )
    architecture = re.sub(r"[^A-Za-z0-9.]", "-", _text(entry.get("architecture")))
    numbers = tuple(map(int, version.split(".")))
    is_for_all = not entry.get("filter_expression")
    return _FirefoxSet(source, target, is_for_all, numbers, version, architecture), kind, file


def _argos(address: Address, read: Read, source: str, target: str) -> Iterator[Offer]:
    """Argos Translate's index: a list of packages, with links to each."""
    for entry in _entries(address.index, "", read):
        if _text(entry.get("type")) not in ("", "translate"):
            continue
        pair = _text(entry.get("from_code")), _text(entry.get("to_code"))
        version = _text(entry.get("package_version"))
        links = [link for link in entry.get("links") or () if _text(link).startswith("http")]
        is_wanted = source in ("", pair[0]) and target in ("", pair[1])
        if not (is_wanted and PAIR.fullmatch("-".join(pair)) and re.fullmatch(r"[\w.-]+", version) and links):
            continue
        name = PurePosixPath(links[0]).name
        url = address.files + name if address.files else links[0]
        yield Offer(
            registry="argos",
            name="-".join(pair),
            source=pair[0],
            target=pair[1],
            version=f"{version}-argos",
            files=(RemoteFile(name=name, url=url),),
            credit="Argos Open Tech and the makers of its packages",
        )


def _hub_offers(address: Address, read: Read, source: str, target: str) -> Iterator[Offer]:
    """OPUS-MT's models on Hugging Face's hub, by their names."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=address.index)
    if source and target:
        try:
            yield _hub_offer(f"{_OPUS}/opus-mt-{source}-{target}", address)
        except RegistryError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
        return
    with _naming(address):
        for model in api.list_models(author=_OPUS, search="opus-mt-"):
            named = re.fullmatch(rf"{_OPUS}/opus-mt-([a-z]{{2,3}})-([a-z]{{2,3}})", model.id)
            if named and source in ("", named[1]) and target in ("", named[2]):
                languages = {"source": named[1], "target": named[2]}
                yield Offer(registry="hf", name=model.id, version="", files=(), **languages)


_OFFERS = {"firefox": _firefox, "argos": _argos, "hf": _hub_offers}
_WEIGHTS = r"model\.bin|model\.safetensors|pytorch_model\.bin"
HUB_FILES = re.compile(rf"README\.md|.*\.(json|spm|model|txt|npz|yml|s2t|gz)|{_WEIGHTS}")
"""What importers read, of all that a folder on the hub has; the weights in one form."""


def _hub_offer(name: str, address: Address) -> Offer:
    """A model of the hub by its name, OWNER/MODEL."""
    from huggingface_hub import HfApi, hf_hub_url

    if not _HUB_NAME.fullmatch(name):
        raise RegistryError(f"hf:{name} names no model of the hub, such as hf:{_OPUS}/opus-mt-fr-en")
    with _naming(address, name):
        info = HfApi(endpoint=address.index).model_info(name, files_metadata=True)
    names = {sibling.rfilename for sibling in info.siblings or ()}
    dropped = {"pytorch_model.bin"} if "model.safetensors" in names else set()
    files = tuple(
        RemoteFile(
            name=sibling.rfilename,
            url=hf_hub_url(name, sibling.rfilename, revision=info.sha, endpoint=address.index),
            size=sibling.size,
            sha256=_text(sibling.lfs and sibling.lfs.sha256),
            git_sha1="" if sibling.lfs else _text(sibling.blob_id),
        )
        for sibling in info.siblings or ()
        if sibling.rfilename not in dropped and HUB_FILES.fullmatch(sibling.rfilename)
    )
    card = info.card_data
    source, target = pair_of(name) or ("", "")
    results = (card and card.eval_results) or ()
    return Offer(
        registry="hf",
        name=name,
        source=source,
        target=target,
        version=f"1.{info.last_modified:%Y%m%d}-hf" if info.last_modified else "1-hf",
        files=files,
        licence=_text(card and card.license),
        credit=name.partition("/")[0],
        quality="; ".join(
            f"{result.metric_type} {result.metric_value} on {result.dataset_name}" for result in results[:3]
        ),
    )


@contextmanager
def _naming(address: Address, name: str = "") -> Iterator[None]:
    """Around calls of Hugging Face's library: raises RegistryError for whatever they raise, its cause a
    FileNotFoundError where there is no such model."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        yield
    except RepositoryNotFoundError:
        raise RegistryError(f"{address.index} has no model {name}") from FileNotFoundError(name)
    # Some of it of the kind of the library below.
    except Exception as error:
        message = str(error).partition("\n")[0] or type(error).__name__
        raise RegistryError(f"{address.index} can't be asked: {message}") from error


def _entries(url: str, key: str, read: Read) -> list[dict[str, Any]]:
    raw = read(url)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RegistryError(f"{url} is no index of models: it is not JSON ({error})") from error
    entries = content.get(key) if key and isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise RegistryError(f"{url} is no index of models: it has no list of them")
    return [entry for entry in entries if isinstance(entry, dict)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
