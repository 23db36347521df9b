"""CTranslate2's models as they come: a folder, or a package of Argos Translate, as LibreTranslate has it.

A folder has model.bin, its vocabularies and maybe config.json. A package is a ZIP archive, `.argosmodel`, of
one folder with metadata.json, sentencepiece.model, and `model/` in CTranslate2's form. A stranger made it:
nothing is unpacked out of its folder, nor more than is allowed.
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
from dragoman_bundle.manifest import MULTIPLE_LANGUAGES

from dragoman_export.importers.ctranslate2_tokenizers import (
    find_tokenizer,
    make_tokenizer,
    read_settings,
    read_vocabularies,
)
from dragoman_export.importers.ctranslate2_variables import read_binary
from dragoman_export.importers.ctranslate2_weights import NUM_HEADS, REVISIONS, read_transformer
from dragoman_export.importers.files import FormatError, read_object
from dragoman_export.importers.hf_tokenizers import languages_of
from dragoman_export.importers.reading import Reading
from dragoman_export.importers.subjects import (
    BEAM_SIZE,
    Origin,
    foreign_subject,
    languages_of_pair,
    starting_with,
)
from dragoman_export.model import Subject
from dragoman_export.reference.imported import Name

MAX_RATIO = 100
"""Most bytes that one compressed byte may stand for; weights hardly shrink, and text by ten at most."""
FREE_BYTES = 1 << 20
"""So small a file may shrink as it likes."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
"""What zipfile raises of files that are no archives, are broken, or can't be read without a password."""
METADATA_FILE = "metadata.json"
MODEL_FOLDER = "model"
NEEDED = (METADATA_FILE, "sentencepiece.model", "bpe.model", "README.md", MODEL_FOLDER)
"""The files that are needed of a package's folder, which also holds what cuts text into sentences."""
LENGTH_PENALTY = 0.2
"""The penalty that Argos Translate decodes with, with a beam of 4, as other models of CTranslate2's do by
default."""
DIFFERENCES = """\
- There a hypothesis' log-probability is divided by length^a, its end counted; here by ((5 + length) / 6)^a
  (Wu et al. 2016, equation 14), with the same length penalty a.
- There a model stored in int8 or int16 also rounds what is multiplied with its weights. Here the weights are
  what is stored, and each precision of the bundle rounds as that precision does."""


def load_ctranslate2(path: Path, given: Reading = Reading()) -> Subject:
    """The model of a folder with model.bin, or of a package, packed or not.

    A folder needs both languages; a package has tokenizers of its own, and languages that are not given are
    those of its metadata.json. Argos Translate copies an unknown token's source word into the translation;
    here no unknown token is produced. Raises FormatError where it is no Transformer in CTranslate2's format,
    is not whole, or holds what ours has no place for. The model finds the tokens that CTranslate2 finds, with
    the same log-probabilities, but for `DIFFERENCES`.
    """
    origin = Origin(
        name=path.name if path.is_file() else path.resolve().name,
        kind="A Transformer in CTranslate2's format",
        options=given.options,
        program="CTranslate2",
        differences=DIFFERENCES,
    )
    if not (path.is_file() or (path / METADATA_FILE).is_file()):
        source = given.source_tokenizer or find_tokenizer(path, "source")
        target = given.target_tokenizer or given.source_tokenizer or find_tokenizer(path, "target")
        return _read_model(path, origin, (given.source_language, given.target_language), (source, target))
    if given.source_tokenizer or given.target_tokenizer:
        raise FormatError(f"{path} is a package of Argos, which has its tokenizer; give none")
    if path.is_dir():
        return _read_package(path, origin, given)
    with tempfile.TemporaryDirectory(prefix="dragoman-argos-") as temporary:
        max_bytes = given.max_unpacked_size * 1_000_000
        unpack(path, Path(temporary), is_wanted=_is_needed, max_bytes=max_bytes)
        found = sorted(Path(temporary).rglob(METADATA_FILE))
        if len(found) != 1:
            raise FormatError(f"{path} has {len(found)} files {METADATA_FILE}; a package of Argos has one")
        try:
            return _read_package(found[0].parent, origin, given)
        except FormatError as error:
            # Where it was unpacked to is nothing that the user knows.
            raise FormatError(str(error).replace(f"{found[0].parent}", str(path))) from error


def _read_package(folder: Path, origin: Origin, given: Reading) -> Subject:
    metadata = read_object(folder / METADATA_FILE)
    if metadata.get("type", "translate") != "translate":
        raise FormatError(f"{folder} is a package of type {metadata['type']!r}, and not of a translation")
    if metadata.get("target_prefix"):
        raise FormatError(
            f"{folder} begins every translation with {metadata['target_prefix']!r} (target_prefix); such "
            "models can't be exported"
        )
    source = given.source_language or metadata.get("from_code")
    target = given.target_language or metadata.get("to_code")
    for key, side, language in (("from_code", "source", source), ("to_code", "target", target)):
        if not isinstance(language, str) or not language:
            raise FormatError(
                f"{folder / METADATA_FILE} has no {key}; give the {side} language with --{side}-language"
            )
    version = metadata.get("package_version")
    tokenizer = find_tokenizer(folder, "source")
    if tokenizer is None:
        raise FormatError(f"{folder} has no sentencepiece.model, which a package of Argos has")
    origin = replace(
        origin,
        kind="A package of Argos Translate",
        version=version if isinstance(version, str) else "",
        licence=_licence(folder),
    )
    return _read_model(
        folder / MODEL_FOLDER,
        origin,
        (source, target),
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


def _read_model(
    folder: Path,
    origin: Origin,
    languages: tuple[str | None, str | None],
    cutters: tuple[Path | None, Path | None],
    *,
    length_penalty: float = 1.0,
    is_unk_produced: bool = True,
) -> Subject:
    """A folder's model, with languages and sentencepiece models of both sides. Raises FormatError."""
    binary = read_binary(folder / "model.bin")
    if binary.spec not in NUM_HEADS:
        raise binary.error(f" is a model of kind {binary.spec!r}; what is read is TransformerSpec")
    if binary.revision not in REVISIONS:
        raise FormatError(
            f"{binary.path} is of revision {binary.revision} of {binary.spec or 'a Transformer'}; read are "
            f"{REVISIONS[0]} to {REVISIONS[-1]}"
        )
    settings = read_settings(folder, binary)
    starts_from_zero = bool(binary.number("decoder/start_from_zero_embedding", 0))
    source, target = read_vocabularies(folder, settings)
    many = languages_of(source.tokens) if source is target else {}
    for side, language in zip(("source", "target"), languages, strict=True):
        if many and language:
            raise FormatError(
                f"{folder} is of many languages, all of which its bundle has; leave --{side}-language out"
            )
    pair = (MULTIPLE_LANGUAGES,) * 2 if many else languages_of_pair(folder, *languages)
    # Marian's models alone start so, and each was trained with sources that end; the converter of those on
    # Hugging Face's hub leaves that to the callers' tokenizer, and does not say it; so of many languages.
    source_end = settings.source_end or starts_from_zero or bool(many)
    imported = read_transformer(binary, norm_epsilon=settings.norm_epsilon)
    for side, vocabulary, name in (("source", source, Name.SOURCE), ("target", target, Name.TARGET)):
        if len(vocabulary.tokens) != len(imported.weights[name]):
            raise FormatError(
                f"{vocabulary.path} is not of this model: it has {len(vocabulary.tokens)} tokens, and "
                f"{binary.path} {len(imported.weights[name])} {side} embeddings"
            )
    bos = len(target.tokens) if starts_from_zero else target.id_of(settings.decoder_start)
    target.id_of(settings.eos)
    if source_end:
        source.id_of(settings.eos)
    never = [bos] if starts_from_zero else []
    if not is_unk_produced:
        never.append(target.id_of(settings.unk))
    imported = starting_with(imported, bos, never_produced=never)
    sizes = [len(imported.weights[name]) for name in (Name.SOURCE, Name.TARGET)]
    is_one = source is target and imported.weights[Name.SOURCE] is imported.weights[Name.TARGET]
    target_tokens = make_tokenizer(target, cutters[1], "target", sizes[1], bos, settings)
    source_tokens = target_tokens
    if not (is_one and cutters[0] == cutters[1]):
        # A source has no beginning: any of its tokens does.
        source_bos = bos if bos < sizes[0] else 0
        source_tokens = make_tokenizer(source, cutters[0], "source", sizes[0], source_bos, settings)
    max_tokens = len(imported.weights[Name.POSITIONS])
    return foreign_subject(
        imported,
        origin,
        tokenizers=(source_tokens, target_tokens),
        pair=pair,
        languages=many,
        source_end=source_end,
        beam_size=BEAM_SIZE,
        length_penalty=length_penalty,
        max_source_tokens=max_tokens,
        max_output_tokens=max_tokens - bool(many),
    )


def unpack(archive: Path, folder: Path, is_wanted: Callable[[PurePosixPath], bool], max_bytes: int) -> None:
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


def _is_needed(path: PurePosixPath) -> bool:
    parts = path.parts[1:] if len(path.parts) > 1 and path.parts[0] not in NEEDED else path.parts
    return parts[0] in NEEDED if len(parts) == 1 else len(parts) == 2 and parts[0] == MODEL_FOLDER


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
