"""The languages that are served, by pair, and their names in English."""

from collections.abc import Iterable

from dragoman_bundle.languages import primary_language
from dragoman_bundle.tags import FORMAL

from dragoman_server.models.model import ServedModel
from dragoman_server.service.core import ServiceCore

_NAMES = """
af:Afrikaans am:Amharic ar:Arabic ast:Asturian az:Azerbaijani be:Belarusian bg:Bulgarian bn:Bengali
br:Breton bs:Bosnian ca:Catalan cs:Czech cy:Welsh da:Danish de:German el:Greek en:English eo:Esperanto
es:Spanish et:Estonian eu:Basque fa:Persian fi:Finnish fo:Faroese fr:French fy:Frisian ga:Irish gd:Gaelic
gl:Galician gu:Gujarati ha:Hausa he:Hebrew hi:Hindi hr:Croatian ht:Haitian hu:Hungarian hy:Armenian
id:Indonesian ig:Igbo is:Icelandic it:Italian ja:Japanese jv:Javanese ka:Georgian kk:Kazakh km:Khmer
kn:Kannada ko:Korean ku:Kurdish ky:Kyrgyz la:Latin lb:Luxembourgish lo:Lao lt:Lithuanian lv:Latvian
mg:Malagasy mk:Macedonian ml:Malayalam mn:Mongolian mr:Marathi ms:Malay mt:Maltese my:Burmese nb:Norwegian
ne:Nepali nl:Dutch nn:Nynorsk no:Norwegian oc:Occitan or:Odia pa:Punjabi pl:Polish ps:Pashto pt:Portuguese
ro:Romanian ru:Russian rw:Kinyarwanda sd:Sindhi si:Sinhala sk:Slovak sl:Slovenian so:Somali sq:Albanian
sr:Serbian su:Sundanese sv:Swedish sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai tk:Turkmen tl:Tagalog
tr:Turkish tt:Tatar ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek vi:Vietnamese wo:Wolof xh:Xhosa yi:Yiddish
yo:Yoruba yue:Cantonese zh:Chinese zu:Zulu
"""
_BY_CODE = dict(pair.split(":") for pair in _NAMES.split())


def language_name(code: str) -> str:
    """The language's English name, with the code's region or script; the code where there is no name."""
    name = _BY_CODE.get(primary_language(code))
    if name is None:
        return code
    more = code.replace("_", "-").partition("-")[2]
    return f"{name} ({more})" if more else name


def targets_by_source(core: ServiceCore) -> dict[str, list[str]]:
    """The languages that models translate from, in order, each with those that one or two of them reach."""
    found: dict[str, set[str]] = {}
    for model in core.models:
        for source in model.manifest.sources:
            found.setdefault(source, set()).update(model.manifest.targets)
    for targets in found.values():
        if core.pivot in targets:
            targets |= found.get(core.pivot, set())
    for source, targets in found.items():
        targets.discard(source)
    return {source: sorted(found[source]) for source in sorted(found)}


def knows_formality(core: ServiceCore, target: str) -> bool:
    """Whether models that translate to the language, or to a region of it, know how to address a reader."""
    language = primary_language(target)
    return any(
        model.knows(FORMAL)
        for model in core.models
        if any(primary_language(target) == language for target in model.manifest.targets)
    )


def all_languages(models: Iterable[ServedModel]) -> list[str]:
    """The languages that models translate from or to, in order."""
    return sorted(
        {language for model in models for language in (*model.manifest.sources, *model.manifest.targets)}
    )
