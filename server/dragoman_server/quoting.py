"""The part of a caller's words, or of a list, that an error repeats: it is bounded.

It travels in a call's trailer, which gRPC bounds at 8 KiB.
"""

from collections.abc import Sequence

MAX_QUOTED_CHARACTERS = 80
"""Most characters that are repeated of what a caller wrote."""
MAX_LISTED_NAMES = 20
"""Most names that are listed."""


def quote(text: str) -> str:
    """A caller's words, in quotation marks and cut short where it is long."""
    return repr(text if len(text) <= MAX_QUOTED_CHARACTERS else f"{text[: MAX_QUOTED_CHARACTERS - 1]}…")


def list_names(names: Sequence[str]) -> str:
    """The names, or the first of them and how many more there are."""
    listed = ", ".join(names[:MAX_LISTED_NAMES])
    num_more = len(names) - MAX_LISTED_NAMES
    return f"{listed}, and {num_more} more" if num_more > 0 else listed
