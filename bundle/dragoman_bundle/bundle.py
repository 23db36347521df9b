"""Opens a bundle and vouches for it: every file is there, whole and unaltered, and fits the manifest.

Owns the reading side. Must not know what runs the graphs.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from dragoman_bundle.checked_files import check_file, check_size, external_files, read_file, read_regular
from dragoman_bundle.errors import (
    BundleError,
    BundleFileError,
    ManifestError,
    ShortlistError,
    TokenizerMismatchError,
)
from dragoman_bundle.manifest import (
    CARD_FILE,
    GRAPH_SUFFIX,
    GRAPHS,
    MANIFEST_FILE,
    MAX_MANIFEST_BYTES,
    SHORTLIST_GRAPHS,
    Manifest,
    SpecialIds,
    graph_file,
)
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import FIRST_TAG, LAST_TAG, Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

MAX_TOKENIZER_BYTES = 1 << 26
"""Most bytes of a tokenizer, or of its pieces: those of a million tokens have half as many."""
MAX_SHORTLIST_BYTES = 1 << 28
MAX_CARD_BYTES = 1 << 20
# Behind the heading, and the sentence that names the languages.
_DESCRIBED = re.compile(r"#[^\n]*\n\s*(?:(?:Translates|Continues) [^\n]*?\.\s)?((?:(?![#|])[^\n]+\n)+)")


@dataclass(frozen=True, kw_only=True)
class BundleGraphs:
    """What decoding needs of a bundle. It can be pickled, for another process to decode with it."""

    path: Path
    manifest: Manifest
    shortlist: Shortlist | None = None
    """Where the manifest has one."""

    def graph_path(self, precision: str, graph: str) -> Path:
        """File of a graph such as "encoder". Raises BundleError where the precision is absent."""
        if precision not in self.manifest.precisions:
            present = ", ".join(self.manifest.precisions)
            raise BundleError(f"{self.path} holds no {precision} graphs; it holds {present}")
        return self.path / graph_file(precision, graph)

    def has_graph(self, precision: str, graph: str) -> bool:
        """Whether a graph is there that a bundle may lack, such as "regroup"."""
        return graph_file(precision, graph) in self.manifest.files

    def check(self, precision: str) -> None:
        """Raises BundleFileError where a file of the precision is not what the manifest says, any more."""
        for name, entry in self.manifest.files.items():
            if PurePosixPath(name).parts[0] == precision:
                check_file(self.path, name, entry)


@dataclass(frozen=True, kw_only=True)
class Bundle(BundleGraphs):
    """A bundle that checked out."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    target_start: tuple[int, ...] = ()
    """Target tokens that every translation begins with, and that are no part of it."""

    def tagged(self, tag: str) -> "Bundle":
        """The bundle with a tag before every source; as it is for an empty one. Raises ValueError."""
        return replace(self, source_tokenizer=self.source_tokenizer.tagged(tag)) if tag else self

    def between(self, source: str, target: str) -> "Bundle":
        """The bundle, of many languages, for two of them, given by their codes as the manifest has them."""
        assert isinstance(self.source_tokenizer, VocabularyTokenizer)
        pieces = self.manifest.languages
        start = self.target_tokenizer.id_of(pieces[target])
        assert start is not None
        return replace(
            self,
            manifest=self.manifest.between(source, target),
            source_tokenizer=self.source_tokenizer.beginning_with(pieces[source]),
            target_start=(start,),
        )

    @property
    def graphs(self) -> BundleGraphs:
        """Its part for decoding: tokenizers of 65,000 tokens take tens of MiB."""
        return BundleGraphs(path=self.path, manifest=self.manifest, shortlist=self.shortlist)


def open_bundle(path: Path | str) -> Bundle:
    """Reads the manifest and checks every file against it.

    Raises BundleError naming the file and what is wrong with it: missing, of another size or sha256, outside
    the folder, of another format version, not well formed, or a tokenizer or shortlist of another vocabulary.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    _check_required(folder, manifest)
    for name, entry in manifest.files.items():
        check_file(folder, name, entry)
        if name.endswith(GRAPH_SUFFIX):
            _check_external_files(folder, name, manifest)

    of_source, of_target = _sides(manifest)
    source = _load_tokenizer(folder, manifest, of_source, manifest.language_token)
    # One of 256,000 pieces takes 100 MiB.
    is_one = of_source == of_target and manifest.language_token is None
    target = source if is_one else _load_tokenizer(folder, manifest, of_target)
    for piece in manifest.languages.values():
        if source.id_of(piece) is None or target.id_of(piece) is None:
            raise TokenizerMismatchError(f"{folder}: its tokenizers have no piece {piece!r}, of a language")
    shortlist = None
    if manifest.shortlist is not None:
        file, end = manifest.shortlist.file, manifest.target_ids.eos
        try:
            shortlist = Shortlist.from_bytes(
                _read(folder, manifest, file, MAX_SHORTLIST_BYTES),
                source_vocabulary=manifest.source_vocabulary,
                target_vocabulary=manifest.target_vocabulary,
            )
        except ShortlistError as error:
            raise ShortlistError(f"{folder / file}: {error}") from error
        if end not in shortlist.always:
            why = f"token {end} is not among those that all may use"
            raise ShortlistError(f"{folder / file} does not let every sentence end: {why}")
    return Bundle(
        path=folder, manifest=manifest, source_tokenizer=source, target_tokenizer=target, shortlist=shortlist
    )


def look_at_bundle(path: Path) -> Manifest:
    """The manifest of a bundle whose files are all there in the right size; nothing else of them is checked.

    For a bundle that is opened later, which checks the rest. Raises BundleError.
    """
    manifest = read_manifest(path)
    _check_required(path, manifest)
    for name, entry in manifest.files.items():
        check_size(path, name, entry)
    return manifest


def source_tags(folder: Path, manifest: Manifest) -> frozenset[str]:
    """The tags that may stand before a source, as the bundle's tokenizer alone tells. Raises BundleError."""
    content = _read(folder, manifest, manifest.source_pieces or manifest.source_tokenizer)
    tags = [chr(code) for code in range(ord(FIRST_TAG), ord(LAST_TAG) + 1)]
    # In JSON they may be escaped. Most vocabularies have none, and to load one takes long.
    if not any(tag.encode() in content or f"\\u{ord(tag):x}".encode() in content for tag in tags):
        return frozenset()
    tokenizer = _load_tokenizer(folder, manifest, _sides(manifest)[0], manifest.language_token)
    return frozenset(tag for tag in tags if tokenizer.id_of(tag) is not None)


def read_manifest(folder: Path) -> Manifest:
    """The manifest alone, its files unchecked. Raises ManifestError."""
    path = folder / MANIFEST_FILE
    try:
        text = read_regular(path, max_bytes=MAX_MANIFEST_BYTES).decode()
    except OSError as error:
        versions = ", ".join(sorted(str(found.parent) for found in folder.glob(f"*/{MANIFEST_FILE}")))
        hint = f"; {folder} holds a model's versions, give one of them: {versions}" if versions else ""
        raise ManifestError(f"{path} can't be read: {error.strerror}{hint}") from error
    except UnicodeDecodeError as error:
        raise ManifestError(f"{path} is not UTF-8: {error}") from error
    try:
        return Manifest.from_json(text)
    except ManifestError as error:
        raise ManifestError(f"{folder}: {error}") from error


def read_description(folder: Path) -> str:
    """What the card says that the model is good for; empty where there is no card that says it."""
    try:
        card = read_regular(folder / CARD_FILE, max_bytes=MAX_CARD_BYTES).decode(errors="replace")
    except OSError:
        return ""
    found = _DESCRIBED.match(card)
    return " ".join(found[1].split()) if found else ""


def _check_required(folder: Path, manifest: Manifest) -> None:
    """Raises ManifestError where the manifest's own files lack one that it needs."""
    required = {manifest.source_tokenizer, manifest.target_tokenizer}
    graphs: tuple[str, ...] = GRAPHS
    required.update(file for file in (manifest.source_pieces, manifest.target_pieces) if file is not None)
    if manifest.shortlist is not None:
        required.add(manifest.shortlist.file)
        graphs += SHORTLIST_GRAPHS
    required.update(graph_file(precision, graph) for precision in manifest.precisions for graph in graphs)
    if unlisted := sorted(required - manifest.files.keys()):
        lack = f"{unlisted[0]:.300}, which is not among its files"
        raise ManifestError(f"{folder / MANIFEST_FILE}: needs {lack}")


def _check_external_files(folder: Path, graph: str, manifest: Manifest) -> None:
    """Raises BundleFileError where a graph takes tensors from a file that the manifest does not vouch for."""
    try:
        named = external_files(folder / graph)
    except (OSError, ValueError) as error:
        raise BundleFileError(f"{folder / graph} can't be read as a graph: {error}") from error
    for name in sorted(named):
        file = PurePosixPath(graph).parent / name
        if ".." in file.parts or str(file) not in manifest.files:
            what = f"tensors from {name!r:.200}, which is not among the manifest's files"
            raise BundleFileError(f"{folder / graph} takes {what}")


_Side = tuple[str, str | None, int, SpecialIds]


def _sides(manifest: Manifest) -> tuple[_Side, _Side]:
    """Tokenizer, pieces, vocabulary and ids of the source and of the target."""
    return (
        (manifest.source_tokenizer, manifest.source_pieces, manifest.source_vocabulary, manifest.source_ids),
        (manifest.target_tokenizer, manifest.target_pieces, manifest.target_vocabulary, manifest.target_ids),
    )


def _read(folder: Path, manifest: Manifest, name: str, max_bytes: int = MAX_TOKENIZER_BYTES) -> bytes:
    return read_file(folder, name, manifest.files[name], max_bytes=max_bytes)


def _load_tokenizer(folder: Path, manifest: Manifest, side: _Side, token: str | None = None) -> Tokenizer:
    name, pieces, vocabulary, ids = side
    path, model = folder / name, _read(folder, manifest, name)
    numbered = None if pieces is None else _read(folder, manifest, pieces)
    try:
        if numbered is not None:
            return VocabularyTokenizer(model, numbered, size=vocabulary, ids=ids, language_token=token)
        tokenizer = Tokenizer(model)
    except ValueError as error:
        both = path if pieces is None else f"{path} with {pieces}"
        raise TokenizerMismatchError(f"{both}: {error}") from error
    if tokenizer.vocabulary_size != vocabulary:
        number = f"{tokenizer.vocabulary_size} tokens, and the manifest says {vocabulary}"
        raise TokenizerMismatchError(f"{path} has {number}")
    for field in ("pad", "unk", "bos", "eos"):
        found, expected = getattr(tokenizer, f"{field}_id"), getattr(ids, field)
        if found != expected:
            said = f"the manifest says {expected}"
            raise TokenizerMismatchError(f"{path}: its {field} id is {found}, and {said}")
    return tokenizer
