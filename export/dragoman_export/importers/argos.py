"""CTranslate2's models as they come: a folder, or a package of Argos Translate, as LibreTranslate has it.

A package is a ZIP archive, `.argosmodel`, of one folder with metadata.json, sentencepiece.model, and `model/`
in CTranslate2's form. A stranger made it: nothing is unpacked out of its folder, nor more than is allowed.
"""

import lzma
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from dragoman_bundle.checked_files import leads_out

from dragoman_export.importers.ctranslate2 import read_model
from dragoman_export.importers.ctranslate2_tokenizers import find_tokenizer
from dragoman_export.importers.files import FormatError, read_object
from dragoman_export.importers.subjects import Origin, command_line
from dragoman_export.model import Subject

MAX_RATIO = 100
"""Most bytes that one compressed byte may stand for; weights hardly shrink, and text by ten at most."""
FREE_BYTES = 1 << 20
"""So small a file may shrink as it likes."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
"""What zipfile raises of files that are no archives, are broken, or can't be read without a password."""


def unpack(
    archive: Path, folder: Path, *, is_wanted: Callable[[PurePosixPath], bool], max_bytes: int
) -> None:
    """Writes the wanted files below a folder. Raises FormatError; what is there then is of no use."""
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            for entry in entries:
                if leads_out(entry.filename) or stat.S_ISLNK(entry.external_attr >> 16):
                    why = "leads out of the archive; nothing of it was unpacked"
                    raise FormatError(f"{archive}: {entry.filename!r} {why}")
            wanted = [entry for entry in entries if is_wanted(PurePosixPath(entry.filename))]
            _check_sizes(archive, wanted, max_bytes)
            for entry in wanted:
                _write(archive, opened, entry, folder / entry.filename)
    except FormatError:
        raise
    except _DAMAGED as error:
        raise FormatError(f"{archive} is no ZIP archive, or is damaged: {error}") from error
    except OSError as error:
        raise FormatError(f"{archive} can't be unpacked to {folder}: {error.strerror or error}") from error


def _check_sizes(archive: Path, entries: list[zipfile.ZipInfo], max_bytes: int) -> None:
    for name, count in Counter(entry.filename for entry in entries).most_common(1):
        if count > 1:
            raise FormatError(f"{archive} holds {name!r} {count} times")
    total = sum(entry.file_size for entry in entries)
    if total > max_bytes:
        raise FormatError(
            f"{archive} unpacks to {total / 1e6:,.0f} MB, and {max_bytes / 1e6:,.0f} MB are allowed; "
            "allow more with --max-unpacked-size"
        )
    for entry in entries:
        if entry.file_size > max(FREE_BYTES, MAX_RATIO * entry.compress_size):
            raise FormatError(
                f"{archive}: {entry.filename} is said to unpack from {entry.compress_size} bytes to "
                f"{entry.file_size}; more than {MAX_RATIO} for one is no model"
            )


def _write(archive: Path, opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(entry) as source, path.open("xb") as target:
        # No more comes than the archive says; less does where it lies.
        shutil.copyfileobj(source, target)
    if path.stat().st_size != entry.file_size:
        raise FormatError(
            f"{archive}: {entry.filename} is said to have {entry.file_size} bytes, and has "
            f"{path.stat().st_size}"
        )


METADATA_FILE = "metadata.json"
MODEL_FOLDER = "model"
NEEDED = (METADATA_FILE, "sentencepiece.model", "bpe.model", "README.md", MODEL_FOLDER)
"""Of a package's folder: beside them it holds what cuts text into sentences."""
LENGTH_PENALTY = 0.2
"""As Argos Translate decodes, with a beam of 4, as other models of CTranslate2's are by default."""


def _is_needed(path: PurePosixPath) -> bool:
    parts = path.parts[1:] if len(path.parts) > 1 and path.parts[0] not in NEEDED else path.parts
    return parts[0] in NEEDED if len(parts) == 1 else len(parts) == 2 and parts[0] == MODEL_FOLDER


def _read(folder: Path, origin: Origin, given: tuple[str | None, str | None]) -> Subject:
    metadata = read_object(folder / METADATA_FILE)
    if metadata.get("type", "translate") != "translate":
        raise FormatError(f"{folder} is a package of type {metadata['type']!r}, and not of a translation")
    if metadata.get("target_prefix"):
        raise FormatError(
            f"{folder} begins every translation with {metadata['target_prefix']!r} (target_prefix); such "
            "models can't be exported"
        )
    pair = []
    for key, side, requested in zip(("from_code", "to_code"), ("source", "target"), given, strict=True):
        language = requested or metadata.get(key)
        if not isinstance(language, str) or not language:
            raise FormatError(
                f"{folder / METADATA_FILE} has no {key}; give the {side} language with --{side}-language"
            )
        pair.append(language)
    version = metadata.get("package_version")
    tokenizer = find_tokenizer(folder, "source")
    if tokenizer is None:
        raise FormatError(f"{folder} has no sentencepiece.model, which a package of Argos has")
    return read_model(
        folder / MODEL_FOLDER,
        replace(
            origin,
            kind="A package of Argos Translate",
            version=version if isinstance(version, str) else "",
            licence=_licence(folder),
        ),
        (pair[0], pair[1]),
        (tokenizer, tokenizer),
        length_penalty=LENGTH_PENALTY,
        is_unk_produced=False,
    )


def _licence(folder: Path) -> str:
    """What the package's README says of its licence, on a line of its own or behind "License:"."""
    try:
        text = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"^\W*licen[sc]e\W*[:\n]\W*(\w.{0,100})$", text, re.MULTILINE | re.IGNORECASE)
    return found[1].strip() if found else ""


MAX_UNPACKED_BYTES = 4_000_000_000
DIFFERENCES = """\
- There a hypothesis' log-probability is divided by length^a, its end counted; here by ((5 + length) / 6)^a
  (Wu et al. 2016, equation 14), with the same length penalty a.
- There a model stored in int8 or int16 also rounds what is multiplied with its weights. Here the weights are
  what is stored, and each precision of the bundle rounds as that precision does."""


def load_ctranslate2(
    path: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    source_tokenizer: Path | None = None,
    target_tokenizer: Path | None = None,
    max_bytes: int = MAX_UNPACKED_BYTES,
) -> Subject:
    """The model of a folder with model.bin, or of a package, packed or not.

    A folder needs both languages; a package has tokenizers of its own, and languages that are not given are
    those of its metadata.json. Of an archive at most `max_bytes` are unpacked. Argos Translate copies an
    unknown token's source word into the translation; here no unknown token is produced. Raises FormatError
    where it is no Transformer in CTranslate2's format, is not whole, or holds what ours has no place for.
    The model finds the tokens that CTranslate2 finds, with the same log-probabilities, but for `DIFFERENCES`.
    """
    given = source_language, target_language
    origin = Origin(
        name=path.name if path.is_file() else path.resolve().name,
        kind="A Transformer in CTranslate2's format",
        options=command_line(
            source_language=source_language,
            target_language=target_language,
            source_tokenizer=source_tokenizer,
            target_tokenizer=target_tokenizer,
        ),
        program="CTranslate2",
        differences=DIFFERENCES,
    )
    if not (path.is_file() or (path / METADATA_FILE).is_file()):
        source = source_tokenizer or find_tokenizer(path, "source")
        target = target_tokenizer or source_tokenizer or find_tokenizer(path, "target")
        return read_model(path, origin, given, (source, target))
    if source_tokenizer or target_tokenizer:
        raise FormatError(f"{path} is a package of Argos, which has its tokenizer; give none")
    if path.is_dir():
        return _read(path, origin, given)
    with tempfile.TemporaryDirectory(prefix="dragoman-argos-") as temporary:
        unpack(path, Path(temporary), is_wanted=_is_needed, max_bytes=max_bytes)
        found = sorted(Path(temporary).rglob(METADATA_FILE))
        if len(found) != 1:
            raise FormatError(f"{path} has {len(found)} files {METADATA_FILE}; a package of Argos has one")
        try:
            return _read(found[0].parent, origin, given)
        except FormatError as error:
            # Where it was unpacked to is nothing that the user knows.
            raise FormatError(str(error).replace(f"{found[0].parent}", str(path))) from error
