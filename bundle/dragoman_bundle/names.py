"""What models and languages can be called."""

import re

from dragoman_bundle.errors import ManifestError
from dragoman_bundle.ranges import check_line

MAX_NAME_CHARACTERS = 128
"""Longest name, version or language: each stands in every answer and every metric."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")


def check_name(field: str, name: str) -> None:
    """Raises ManifestError where a model can't be called so: names are parts of paths and of requests."""
    if not _NAME.fullmatch(name):
        raise ManifestError(
            f"{field} is {name!r:.80}; it takes letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    check_line(field, name, MAX_NAME_CHARACTERS)


def check_language(field: str, language: str) -> None:
    """Raises ManifestError where a language can't be called so.

    BCP 47 codes can, and what checkpoints of several languages at once are called, such as "cat_oci_spa".
    """
    if not _LANGUAGE.fullmatch(language):
        raise ManifestError(f'{field} is {language!r:.80}, which is no code of a language, such as "de"')
    check_line(field, language, MAX_NAME_CHARACTERS)
