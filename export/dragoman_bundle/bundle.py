"""Opens a bundle and vouches for it: every file is there, whole and unaltered, and fits the manifest.

Owns the reading side. Must not know what runs the graphs.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dragoman_bundle.errors import (
    BundleError,
    BundleFileError,
    ManifestError,
    ShortlistError,
    TokenizerMismatchError,
)
from dragoman_bundle.manifest import (
    GRAPHS,
    MANIFEST_FILE,
    SHORTLIST_GRAPHS,
    FileEntry,
    Manifest,
    SpecialIds,
    graph_file,
)
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizer import Tokenizer
from dragoman_bundle.vocabulary_tokenizer import VocabularyTokenizer


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle that checked out."""

    path: Path
    """Its folder."""
    manifest: Manifest
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
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


def open_bundle(path: Path | str) -> Bundle:
    """Reads the manifest and checks every file against it.

    Raises BundleError naming the file and what is wrong with it: missing, of another size or sha256, outside
    the folder, of another format version, not well formed, or a tokenizer or shortlist of another vocabulary.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    required = {manifest.source_tokenizer, manifest.target_tokenizer}
    required.update(file for file in (manifest.source_pieces, manifest.target_pieces) if file is not None)
    required.update(graph_file(precision, graph) for precision in manifest.precisions for graph in GRAPHS)
    if manifest.shortlist is not None:
        required.add(manifest.shortlist.file)
        required.update(
            graph_file(precision, graph) for precision in manifest.precisions for graph in SHORTLIST_GRAPHS
        )
    if unlisted := sorted(required - manifest.files.keys()):
        raise ManifestError(f"{folder / MANIFEST_FILE}: needs {unlisted[0]}, which is not among its files")
    for name, entry in manifest.files.items():
        try:
            _check_file(folder, name, entry)
        except OSError as error:
            raise BundleFileError(f"{folder / name} can't be read: {error.strerror or error}") from error
    source = _load_tokenizer(
        folder,
        manifest.source_tokenizer,
        manifest.source_pieces,
        manifest.source_vocabulary,
        manifest.source_ids,
        manifest.language_token,
    )
    target = _load_tokenizer(
        folder,
        manifest.target_tokenizer,
        manifest.target_pieces,
        manifest.target_vocabulary,
        manifest.target_ids,
    )
    shortlist = None
    if manifest.shortlist is not None:
        shortlist = Shortlist.load(
            folder / manifest.shortlist.file,
            source_vocabulary=manifest.source_vocabulary,
            target_vocabulary=manifest.target_vocabulary,
        )
        if manifest.target_ids.eos not in shortlist.always:
            raise ShortlistError(
                f"{folder / manifest.shortlist.file} does not let every sentence end: token "
                f"{manifest.target_ids.eos} is not among those that all may use"
            )
    return Bundle(
        path=folder,
        manifest=manifest,
        source_tokenizer=source,
        target_tokenizer=target,
        shortlist=shortlist,
    )


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """The manifest alone, its files unchecked. Raises ManifestError."""
    path = folder / MANIFEST_FILE
    try:
        text = path.read_text(encoding="utf-8")
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


def _check_file(folder: Path, name: str, entry: FileEntry) -> None:
    path = folder / name
    relative = PurePosixPath(name)
    escapes = relative.is_absolute() or ".." in relative.parts or "\\" in name or ":" in name
    # What is not printable, such as a byte of 0, no file system takes.
    if escapes or not name.isprintable() or not path.resolve().is_relative_to(folder.resolve()):
        raise BundleFileError(f"{folder}: file {name!r} lies outside the bundle")
    if not path.is_file():
        raise BundleFileError(f"{path} is missing")
    size = path.stat().st_size
    if size != entry.size:
        raise BundleFileError(f"{path} has {size} bytes, and the manifest says {entry.size}")
    digest = sha256_of(path)
    if digest != entry.sha256:
        raise BundleFileError(
            f"{path} is not the file that was exported: its sha256 is {digest}, not {entry.sha256}"
        )


def _load_tokenizer(
    folder: Path,
    name: str,
    pieces: str | None,
    vocabulary: int,
    ids: SpecialIds,
    language_token: str | None = None,
) -> Tokenizer:
    path = folder / name
    if pieces is not None:
        try:
            return VocabularyTokenizer(
                path.read_bytes(),
                (folder / pieces).read_bytes(),
                size=vocabulary,
                ids=ids,
                language_token=language_token,
            )
        except ValueError as error:
            raise TokenizerMismatchError(f"{path} with {pieces}: {error}") from error
    try:
        tokenizer = Tokenizer.load(path)
    except ValueError as error:
        raise TokenizerMismatchError(f"{path}: {error}") from error
    if tokenizer.vocabulary_size != vocabulary:
        raise TokenizerMismatchError(
            f"{path} has {tokenizer.vocabulary_size} tokens, and the manifest says {vocabulary}"
        )
    for field in ("pad", "unk", "bos", "eos"):
        found, expected = getattr(tokenizer, f"{field}_id"), getattr(ids, field)
        if found != expected:
            raise TokenizerMismatchError(
                f"{path}: its {field} id is {found}, and the manifest says {expected}"
            )
    return tokenizer
