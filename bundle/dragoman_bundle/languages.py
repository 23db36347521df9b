"""Languages: their tags, as BCP 47 has them ("de", "pt-BR", "zh-Hant"), and what must be known beside a tag.

`languages.tsv` has them: codes of ISO 639-2 and 639-3 for those that have one of 639-1, scripts and names.
"""

import functools
import re
from pathlib import Path
from typing import Literal, NamedTuple

from dragoman_bundle.errors import LanguageTagError

_UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "yue", "zh"})
UNSPACED_CHARACTERS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Kana
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\uaa60-\uaa7f\u1780-\u17d3\u17dd"  # Burmese, Khmer
)
"""The characters of scripts that write no spaces, as they stand within brackets of a regular expression."""
HANGUL = "\uac00-\ud7a3"
"""The syllables of Korean, in the same way: words stand apart, but particles touch what they belong to."""
# RFC 5646, section 2.1: language, script, region, variants, extensions and private use. A language of four
# letters or more is in its grammar, but none is registered.
_TAG = re.compile(
    r"[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(-[a-wyz0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?",
    re.IGNORECASE,
)


class _Language(NamedTuple):
    tag: str
    long_codes: list[str]
    """Codes of three letters; of a language of many, such as Arabic, also that of the largest."""
    script: str
    """The script of who names none, as CLDR has it; "" for Latin."""
    names: list[str]
    """The English one first."""


@functools.cache
def _languages() -> dict[str, _Language]:
    """The rows by their tags; one that has a region is there for its script alone."""
    rows = {}
    for line in Path(__file__).with_name("languages.tsv").read_text(encoding="utf-8").splitlines():
        tag, long_codes, script, names, *_ = [*line.split("\t"), "", "", ""]
        if not tag.startswith("#"):
            listed = [name for name in names.split(",") if name]
            rows[tag] = _Language(tag, long_codes.split(), script, listed)
    return rows


@functools.cache
def _tags_of(kind: Literal["long_codes", "names"]) -> dict[str, str]:
    """The tags by what a language is called, in small letters."""
    return {called.lower(): row.tag for row in _languages().values() for called in getattr(row, kind)}


@functools.lru_cache(256)
def primary_language(language: str) -> str:
    """The code that rules of a language are kept under: "de" of "de", "DE-at", "de_AT" and "deu"."""
    primary = re.split("[-_]", language.lower(), maxsplit=1)[0]
    return _tags_of("long_codes").get(primary, primary)


def writes_spaces(language: str) -> bool:
    """Whether words, and sentences, stand apart; `language` is a code as `check_language` takes it."""
    return primary_language(language) not in _UNSPACED


def usual_script(language: str, region: str = "") -> str:
    """The script of who names none, in small letters; `language` is as `primary_language` gives it."""
    rows = (_languages().get(tag) for tag in (f"{language}-{region}", language))
    return next((row.script for row in rows if row is not None and row.script), "latn")


def english_name(language: str) -> str | None:
    """The language's name in English; None where nobody knows."""
    row = _languages().get(primary_language(language))
    return row.names[0] if row is not None and row.names else None


def check_language_tag(field: str, language: str) -> None:
    """Raises LanguageTagError, which says what to write, for what is no tag of BCP 47 in its form.

    Letters may be of either case, and a language need not be registered.
    """
    if _TAG.fullmatch(language):
        return
    if meant := _meant(language):
        raise LanguageTagError(f'{field} is {language!r}; write it as BCP 47 does: "{meant}"')
    raise LanguageTagError(
        f"{field} is {language!r}, which is no tag of a language as BCP 47 has them: write its two or three "
        'letters, and where it matters a region, such as "fr" or "fr-FR"'
    )


def tag_of_name(name: str) -> str | None:
    """The tag of a language by one of its names, such as "German" or "Deutsch"; None for what is none.

    So many letters as a code has are one: "ga" is Irish, and the language Ga is "gaa".
    """
    name = name.strip().lower()
    return None if name.isascii() and len(name) <= 3 else _tags_of("names").get(name)


def _meant(language: str) -> str | None:
    """The tag that was probably meant: of a name, or with hyphens and the case of its parts set right."""
    words = language.strip().replace("_", "-").split("-")
    words[0] = (tag_of_name(words[0]) or words[0]).lower()
    for place, word in enumerate(words[1:], start=1):
        words[place] = {2: word.upper(), 4: word.title()}.get(len(word), word.lower())
    tag = "-".join(words)
    return tag if _TAG.fullmatch(tag) else None
