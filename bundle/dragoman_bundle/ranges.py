"""What numbers and texts a manifest may hold: those that a server can tell of, and that a model can have."""

import re

from dragoman_bundle.errors import ManifestError

MAX_BEAM_SIZE = 1024
MAX_LENGTH_PENALTY = 10
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def check_number(field: str, value: float, least: float, most: float) -> None:
    """Raises ManifestError for a number outside of a range. None that is not finite is inside of one."""
    if not least <= value <= most:
        raise ManifestError(f"{field} is {value!r:.80}; it must be from {least} to {most}")


def check_line(field: str, text: str, max_characters: int) -> None:
    """Raises ManifestError for a text that is too long, or that is more than one line."""
    _check_text(field, text, max_characters, _CONTROL)


def check_lines(field: str, text: str, max_characters: int) -> None:
    """Raises ManifestError for a text that is too long, or has control characters that end no line."""
    _check_text(field, text, max_characters, _CONTROL_BUT_LINES)


def _check_text(field: str, text: str, max_characters: int, forbidden: re.Pattern[str]) -> None:
    if len(text) > max_characters:
        raise ManifestError(f"{field} has {len(text)} characters, and it takes {max_characters}")
    if found := forbidden.search(text):
        raise ManifestError(f"{field} is {text!r:.80}, with the character {found[0]!r}, which it can't have")
