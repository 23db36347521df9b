"""The scripts that languages are written in. Latin is at home in texts of every language."""

import functools
import unicodedata

from dragoman_bundle.languages import primary_language

_SCRIPTS = {
    "LATIN": (
        "af az br bs ca cs cy da de en eo es et eu fi fil fr fy ga gd gl ha hr ht hu id ig is it ku la lb lt "
        "lv mg ms mt nb nl nn no ny oc pl pt qu rm ro rw sk sl sn so sq su sv sw tk tl tn tr uz vi wo xh "
        "yo zu"
    ),
    "CYRILLIC": "ru uk be bg mk sr kk ky mn tg tt ba cv",
    "GREEK": "el grc",
    "ARABIC": "ar fa ur ps sd ug ckb",
    "HEBREW": "he yi",
    "DEVANAGARI": "hi mr ne sa",
    "HANGUL": "ko",
    "THAI": "th",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "BENGALI": "bn as",
    "TAMIL": "ta",
    "TELUGU": "te",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "KHMER": "km",
    "LAO": "lo",
    "MYANMAR": "my",
    "ETHIOPIC": "am ti",
    "SINHALA": "si",
}
_OF_LANGUAGE = {language: script for script, languages in _SCRIPTS.items() for language in languages.split()}
_EVERYWHERE = (
    "LATIN",
    "FULLWIDTH",
    "FEMININE",
    "MASCULINE",
    "MODIFIER",
    "MICRO",
    "SUPERSCRIPT",
    "SUBSCRIPT",
    "DOUBLE-STRUCK",
)


def is_foreign(word: str, language: str) -> bool:
    """Whether it has letters of a script that the language is not written in, and that is not Latin.

    False for a language whose script is not known here, or that has several, as Japanese has.
    """
    if word.isascii():
        return False
    script = _OF_LANGUAGE.get(primary_language(language))
    return script is not None and any(
        character.isalpha() and not _script(character).startswith((script, *_EVERYWHERE))
        for character in word
    )


def has_no_letter_of(text: str, language: str) -> bool:
    """Whether it has letters, and none of the language's script; False where that is not known."""
    script = _OF_LANGUAGE.get(primary_language(language))
    if script is None or (script == "LATIN" and text.isascii()):
        return False
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and not any(_script(letter).startswith((script, "MODIFIER")) for letter in letters)


@functools.lru_cache(4096)
def _script(character: str) -> str:
    return unicodedata.name(character, "UNNAMED")
