"""Which language a caller means: the lookup of RFC 4647, section 3.4, and where that finds none the closest.

Owns how codes of languages are compared. Must not know models.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from dragoman_bundle import Manifest
from dragoman_bundle.errors import MAX_NAME_CHARACTERS
from dragoman_bundle.languages import primary_language, usual_script

# RFC 5646, section 2.1: language, extended language, script, region, variants, and what says nothing of which
# model translates: extensions and private use.
_TAG = re.compile(
    r"(?P<language>[a-z]{2,3})(-(?P<extended>[a-z]{3}))?(-(?P<script>[a-z]{4}))?"
    r"(-(?P<region>[a-z]{2}|[0-9]{3}))?(?P<variants>(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)"
    r"(-[a-z0-9](-[a-z0-9]{1,8})+)*"
)
# Their members are written as extended languages, such as "zh-yue". Elsewhere three letters behind a language
# are part of a checkpoint's name, such as "cat_oci_spa".
_WITH_EXTENDED = frozenset({"ar", "ms", "sw", "uz", "zh"})
_MAX_CHARACTERS = 2 * MAX_NAME_CHARACTERS
_DEPRECATED = {"iw": "he", "in": "id", "ji": "yi"}


class Distance(NamedTuple):
    """How far a language that there is lies from the one that is asked for; the least is the closest."""

    kind: int
    """0: what is asked for or the more general, 1: the more special, 2: that of another region."""
    num_subtags: int
    """How many of either are not the other's."""

    def __add__(self, other: object) -> "Distance":
        assert isinstance(other, Distance)
        return Distance(self.kind + other.kind, self.num_subtags + other.num_subtags)


class _Tag(NamedTuple):
    language: str
    script: str
    region: str
    variants: tuple[str, ...]


def distance(wanted: str, available: str) -> Distance | None:
    """How well a language serves who asks for another; None where it does not.

    Codes may have any case, "_" for "-", white space around them, and three letters of ISO 639-2 and 639-3.
    A script is never given for another, nor a variant to who has not asked for it.
    """
    # A caller may send anything, and what is asked for is remembered.
    return _distance(wanted, available) if len(wanted) <= _MAX_CHARACTERS else None


def closest_pair(manifest: Manifest, source: str, target: str) -> tuple[Distance, tuple[str, str]] | None:
    """The pair of a model's languages that is closest to a caller's, and how close that is.

    None where it does not translate between such. One that is empty is any.
    """
    total = Distance(0, 0)
    pair: list[str] = []
    for wanted, languages in ((source, manifest.sources), (target, manifest.targets)):
        found = {has: distance(wanted, has) if wanted.strip() else Distance(0, 0) for has in languages}
        if manifest.languages and pair and source.strip() and target.strip():
            del found[pair[0]]
        near = {language: apart for language, apart in found.items() if apart is not None}
        if not near:
            return None
        pair.append(min(near, key=near.__getitem__))
        total += near[pair[-1]]
    return total, (pair[0], pair[1])


@lru_cache(maxsize=10_000)
def _distance(wanted: str, available: str) -> Distance | None:
    wanted, available = normalised(wanted), normalised(available)
    if wanted == available:
        return Distance(0, 0)
    requested, offered = _parse(wanted), _parse(available)
    if requested is None or offered is None or requested[:2] != offered[:2]:
        # Another language, or another script of it.
        return None
    if offered.variants != requested.variants[: len(offered.variants)]:
        return None
    num_dropped = len(requested.variants) - len(offered.variants)
    if requested.region == offered.region:
        return Distance(0, num_dropped)
    if not offered.region:
        return Distance(0, num_dropped + 1)
    if not requested.region:
        return Distance(1, num_dropped + 1)
    return Distance(2, num_dropped + 2)


def normalised(code: str) -> str:
    """The code in the form that codes are compared in: "de-at" of " de_AT" and of "deu-AT"."""
    first, *subtags = re.split("[-_]", code.strip().lower())
    first = _DEPRECATED.get(first, primary_language(first))
    if first in _WITH_EXTENDED and subtags and re.fullmatch("[a-z]{3}", subtags[0]):
        # RFC 5646, section 4.5: an extended language stands for itself.
        first = primary_language(subtags.pop(0))
    return "-".join([first, *subtags])


def _parse(code: str) -> _Tag | None:
    """None for what is no tag, which is compared as it is."""
    found = _TAG.fullmatch(code)
    if found is None or found["extended"]:
        return None
    language, region = found["language"], found["region"] or ""
    script = found["script"] or usual_script(language, region)
    return _Tag(language, script, region, tuple(found["variants"].split("-")[1:]))
