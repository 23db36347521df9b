"""What models and languages can be called."""

import re

from dragoman_bundle.errors import ManifestError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")


def check_name(field: str, name: str) -> None:
    """Raises ManifestError where a model can't be called so: names are parts of paths and of requests."""
    if not _NAME.fullmatch(name):
        raise ManifestError(
            f"{field} is {name!r}; it takes letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )


def check_language(field: str, language: str) -> None:
    """Raises ManifestError where a language can't be called so.

    BCP 47 codes can, and what checkpoints of several languages at once are called, such as "cat_oci_spa".
    """
    if not _LANGUAGE.fullmatch(language):
        raise ManifestError(f'{field} is {language!r}, which is no code of a language, such as "de"')
