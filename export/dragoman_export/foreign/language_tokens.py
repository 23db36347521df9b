"""Tokens of languages in the vocabularies of others: M2M100's, as `__de__`, and NLLB's, as `deu_Latn`."""

import re
from collections.abc import Iterable

from dragoman_bundle.languages import primary_language, usual_script

_TOKEN = re.compile(r"__(?P<code>[a-z]{2,3})__|(?P<language>[a-z]{3})_(?P<script>[A-Z][a-z]{3})")
_OWN_CODES = {"ns": "nso"}
"""M2M100's codes that are none of BCP 47."""


def languages_of(tokens: Iterable[str]) -> dict[str, str]:
    """Those of the tokens that stand for languages, by BCP 47 codes, which name a script where it is not the
    language's usual one. None for fewer than two: of one language alone no model need be told.
    """
    found = {_code(token): token for token in tokens if _TOKEN.fullmatch(token)}
    return found if len(found) > 1 else {}


def _code(token: str) -> str:
    match = _TOKEN.fullmatch(token)
    assert match is not None
    if match["code"]:
        return _OWN_CODES.get(match["code"], match["code"])
    language = primary_language(match["language"])
    return language if match["script"].lower() == usual_script(language) else f"{language}-{match['script']}"
