"""Reads whichever is given: a folder in CTranslate2's format, or a package of Argos Translate."""

from pathlib import Path

from dragoman_export.from_ctranslate2.argos import is_package, load_argos
from dragoman_export.from_ctranslate2.checkpoint import load_folder
from dragoman_export.from_ctranslate2.errors import CTranslate2Error
from dragoman_export.subject import Subject

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

    A folder needs both languages, a package has tokenizers of its own. Raises CTranslate2Error where it is no
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
        raise CTranslate2Error(f"{path} is a package of Argos, which has its tokenizer; give none")
    return load_argos(
        path, source_language=source_language, target_language=target_language, max_bytes=max_bytes
    )
