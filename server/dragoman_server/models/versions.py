"""The order of versions, in which numbers count as numbers: 2 before 10, 1.9 before 1.10."""

import re

VersionKey = list[tuple[int, int, str]]

# Where letters sort before it and separators after; see _rank.
_END_OF_VERSION = (1, 0, "")


def version_key(version: str) -> VersionKey:
    """What versions are sorted by.

    Letters after a number make a pre-release: 2-beta and 2rc1 come before 2.
    """
    return [*map(_rank, re.findall(r"\d+|\D+", version)), _END_OF_VERSION]


def _rank(part: str) -> tuple[int, int, str]:
    """Of a part of a version: letters, the version's end, separators, numbers."""
    if part.isdecimal():
        return 3, int(part), ""
    return (0 if any(map(str.isalpha, part)) else 2), 0, part
