"""CTranslate2's models as they come: a folder, or a package of Argos Translate, as LibreTranslate has it.

A package is a ZIP archive, `.argosmodel`, of one folder with metadata.json, sentencepiece.model, and `model/`
in CTranslate2's form.
"""

import re
import tempfile
from pathlib import Path, PurePosixPath

from dragoman_export.importers.ctranslate2 import DIFFERENCES, load_folder, read_model
from dragoman_export.importers.ctranslate2_tokenizers import find_tokenizer
from dragoman_export.importers.files import FormatError, read_object
from dragoman_export.importers.subjects import Origin, command_line
from dragoman_export.importers.unpacking import unpack
from dragoman_export.subject import Subject

METADATA_FILE = "metadata.json"
MODEL_FOLDER = "model"
NEEDED = (METADATA_FILE, "sentencepiece.model", "bpe.model", "README.md", MODEL_FOLDER)
"""Of a package's folder: beside them it holds what cuts text into sentences."""
BEAM_SIZE, LENGTH_PENALTY = 4, 0.2
"""As Argos Translate decodes."""


def is_package(path: Path) -> bool:
    """Whether it is a file, or a folder as it lies in one."""
    return path.is_file() or (path / METADATA_FILE).is_file()


def load_argos(
    path: Path, *, source_language: str | None, target_language: str | None, max_bytes: int
) -> Subject:
    """The model of a package, of which at most `max_bytes` are unpacked. Raises FormatError.

    Languages that are not given are those of metadata.json. Argos Translate copies an unknown token's source
    word into the translation; here no unknown token is produced.
    """
    options = command_line(source_language=source_language, target_language=target_language)
    if path.is_dir():
        return _read(path, path.resolve().name, source_language, target_language, options)
    with tempfile.TemporaryDirectory(prefix="dragoman-argos-") as temporary:
        unpack(path, Path(temporary), is_wanted=_is_needed, max_bytes=max_bytes)
        found = sorted(Path(temporary).rglob(METADATA_FILE))
        if len(found) != 1:
            raise FormatError(f"{path} has {len(found)} files {METADATA_FILE}; a package of Argos has one")
        try:
            return _read(found[0].parent, path.name, source_language, target_language, options)
        except FormatError as error:
            # Where it was unpacked to is nothing that the user knows.
            message = str(error).replace(f"{found[0].parent}", str(path))
            raise FormatError(message) from error


def _is_needed(path: PurePosixPath) -> bool:
    parts = path.parts[1:] if len(path.parts) > 1 and path.parts[0] not in NEEDED else path.parts
    return parts[0] in NEEDED if len(parts) == 1 else len(parts) == 2 and parts[0] == MODEL_FOLDER


def _read(
    folder: Path, name: str, source_language: str | None, target_language: str | None, options: str
) -> Subject:
    metadata = read_object(folder / METADATA_FILE)
    if metadata.get("type", "translate") != "translate":
        raise FormatError(f"{folder} is a package of type {metadata['type']!r}, and not of a translation")
    if metadata.get("target_prefix"):
        raise FormatError(
            f"{folder} begins every translation with {metadata['target_prefix']!r} (target_prefix); such "
            "models can't be exported"
        )
    languages = {}
    for side, requested, key in (
        ("source", source_language, "from_code"),
        ("target", target_language, "to_code"),
    ):
        language = requested or metadata.get(key)
        if not isinstance(language, str) or not language:
            raise FormatError(
                f"{folder / METADATA_FILE} has no {key}; give the {side} language with --{side}-language"
            )
        languages[side] = language
    version = metadata.get("package_version")
    tokenizer = find_tokenizer(folder, "source")
    if tokenizer is None:
        raise FormatError(f"{folder} has no sentencepiece.model, which a package of Argos has")
    return read_model(
        folder / MODEL_FOLDER,
        Origin(
            name=name,
            kind="A package of Argos Translate",
            version=version if isinstance(version, str) else "",
            options=options,
            licence=_licence(folder),
            program="CTranslate2",
            differences=DIFFERENCES,
        ),
        (languages["source"], languages["target"]),
        (tokenizer, tokenizer),
        beam_size=BEAM_SIZE,
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

    A folder needs both languages, a package has tokenizers of its own. Raises FormatError where it is no
    Transformer in CTranslate2's format, is not whole, or holds what our Transformer has no place for.
    """
    if not is_package(path):
        return load_folder(
            path,
            source_language=source_language,
            target_language=target_language,
            source_tokenizer=source_tokenizer,
            target_tokenizer=target_tokenizer,
        )
    if source_tokenizer or target_tokenizer:
        raise FormatError(f"{path} is a package of Argos, which has its tokenizer; give none")
    return load_argos(
        path, source_language=source_language, target_language=target_language, max_bytes=max_bytes
    )
