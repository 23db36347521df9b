"""Why a bundle was refused, and checks of what a manifest may hold: names, numbers and texts.

ValueError
├── LanguageTagError            a language is not written as BCP 47 does
└── BundleError                 what is asked of a bundle it does not have, or cannot be
    ├── ManifestError           manifest.json is missing, of another format version, or not well formed
    ├── BundleFileError         a file is missing, truncated, altered or outside the bundle
    ├── TokenizerMismatchError  a tokenizer is not the one that the manifest describes
    └── ShortlistError          a shortlist is not well formed or for another vocabulary
"""

import re


class LanguageTagError(ValueError):
    """A language that is not written as BCP 47 does; says what to write."""


class BundleError(ValueError):
    """A bundle that does not check out, or that lacks what is asked of it. Names the file and the reason."""


class ManifestError(BundleError):
    """The manifest is missing, of another format version, or holds a key or value it must not."""


class BundleFileError(BundleError):
    """A file that the manifest lists is missing, unreadable, truncated, altered or outside the folder."""


class TokenizerMismatchError(BundleError):
    """A tokenizer whose vocabulary or special ids are not those that the manifest gives."""


class ShortlistError(BundleError):
    """A shortlist that is not well formed, or that was made for another vocabulary."""


MAX_BEAM_SIZE = 1024
MAX_LENGTH_PENALTY = 10
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def check_number(field: str, value: float, least: float, most: float) -> None:
    """Raises ManifestError for a number outside of a range. None that is not finite is inside of one."""
    if not least <= value <= most:
        raise ManifestError(f"{field} is {value!r:.80}; it must be from {least} to {most}")


def check_text(field: str, text: str, max_characters: int, *, has_lines: bool = False) -> None:
    """Raises ManifestError for a text that is too long, has control characters, or more than one line."""
    if len(text) > max_characters:
        raise ManifestError(f"{field} has {len(text)} characters, and it takes {max_characters}")
    if found := (_CONTROL_BUT_LINES if has_lines else _CONTROL).search(text):
        raise ManifestError(f"{field} is {text!r:.80}, with the character {found[0]!r}, which it can't have")


MAX_NAME_CHARACTERS = 128
"""Longest name, version or language: each stands in every answer and every metric."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")


def check_name(field: str, name: str) -> None:
    """Raises ManifestError where a model can't be called so: names are parts of paths and of requests."""
    if not _NAME.fullmatch(name):
        rule = "it takes letters, digits, '.', '_' and '-', beginning with a letter or digit"
        raise ManifestError(f"{field} is {name!r:.80}; {rule}")
    check_text(field, name, MAX_NAME_CHARACTERS)


def check_language(field: str, language: str) -> None:
    """Raises ManifestError where a language can't be called so.

    BCP 47 codes can, and what checkpoints of several languages at once are called, such as "cat_oci_spa".
    """
    if not _LANGUAGE.fullmatch(language):
        raise ManifestError(f'{field} is {language!r:.80}, which is no code of a language, such as "de"')
    check_text(field, language, MAX_NAME_CHARACTERS)
