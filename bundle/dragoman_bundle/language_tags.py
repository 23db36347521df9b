"""Tags of languages as BCP 47 has them, wherever one is written down: "de", "pt-BR", "zh-Hant".

A bundle may be called otherwise, by what its checkpoint says ("cat_oci_spa"); a person is told what to write.
"""

import re

from dragoman_bundle.errors import LanguageTagError

# RFC 5646, section 2.1: language, script, region, variants, extensions and private use. A language of four
# letters or more is in its grammar, but none is registered.
_TAG = re.compile(
    r"[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(-[a-wyz0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?",
    re.IGNORECASE,
)
# Of ISO 639-1, in English, and of the languages most often asked for by their own name.
_NAMED = """
af:afrikaans am:amharic ar:arabic az:azerbaijani be:belarusian bg:bulgarian bn:bengali,bangla bs:bosnian
ca:catalan cs:czech cy:welsh da:danish de:german,deutsch el:greek en:english es:spanish,castilian,español
et:estonian eu:basque fa:persian,farsi fi:finnish fr:french,français ga:irish gl:galician gu:gujarati
he:hebrew hi:hindi hr:croatian hu:hungarian hy:armenian id:indonesian is:icelandic it:italian,italiano
ja:japanese ka:georgian kk:kazakh km:khmer kn:kannada ko:korean lo:lao lt:lithuanian lv:latvian
mk:macedonian ml:malayalam mn:mongolian mr:marathi ms:malay my:burmese ne:nepali nl:dutch,nederlands
no:norwegian pa:punjabi pl:polish,polski pt:portuguese,português ro:romanian ru:russian,русский si:sinhala
sk:slovak sl:slovenian,slovene sq:albanian sr:serbian sv:swedish sw:swahili ta:tamil te:telugu th:thai
tl:tagalog tr:turkish uk:ukrainian ur:urdu uz:uzbek vi:vietnamese zh:chinese,mandarin
"""
_TAG_OF_NAME = {
    name: tag for tag, names in (entry.split(":") for entry in _NAMED.split()) for name in names.split(",")
}


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


def _meant(language: str) -> str | None:
    """The tag that was probably meant: of a name, or with hyphens and the case of its parts set right."""
    words = language.strip().replace("_", "-").split("-")
    words[0] = _TAG_OF_NAME.get(words[0].lower(), words[0]).lower()
    for place, word in enumerate(words[1:], start=1):
        words[place] = {2: word.upper(), 4: word.title()}.get(len(word), word.lower())
    tag = "-".join(words)
    return tag if _TAG.fullmatch(tag) else None
