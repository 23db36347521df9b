"""What must be known of a language beside its code."""

import re

_UNSPACED = frozenset({"ja", "km", "lo", "my", "th", "yue", "zh"})
# Of ISO 639-2 and 639-3, as checkpoints often have them, and of 639-1, which rules are kept under.
# Arabic, Chinese and Persian are also called by the member that is most of them.
_LONG_AND_SHORT = """
afr:af amh:am ara:ar arb:ar aze:az bel:be ben:bn bos:bs bul:bg bur:my cat:ca ces:cs chi:zh cmn:zh cym:cy
cze:cs dan:da deu:de dut:nl ell:el eng:en est:et eus:eu fas:fa fin:fi fra:fr fre:fr ger:de gle:ga glg:gl
gre:el guj:gu heb:he hin:hi hrv:hr hun:hu hye:hy ice:is ind:id isl:is ita:it jpn:ja kan:kn kat:ka kaz:kk
khm:km kor:ko lao:lo lav:lv lit:lt mal:ml mar:mr mkd:mk mon:mn msa:ms mya:my nep:ne nld:nl nno:nn nob:nb
nor:no ori:or pan:pa per:fa pes:fa pol:pl por:pt ron:ro rum:ro rus:ru slk:sk slo:sk slv:sl spa:es sqi:sq
srp:sr swa:sw swe:sv tam:ta tel:te tgl:tl tha:th tur:tr ukr:uk urd:ur uzb:uz vie:vi zho:zh
"""
_SHORT = dict(pair.split(":") for pair in _LONG_AND_SHORT.split())


def primary_language(language: str) -> str:
    """The code that rules of a language are kept under: "de" of "de", "DE-at", "de_AT" and "deu"."""
    primary = re.split("[-_]", language.lower(), maxsplit=1)[0]
    return _SHORT.get(primary, primary)


def writes_spaces(language: str) -> bool:
    """Whether words, and sentences, stand apart; `language` is a code as `check_language` takes it."""
    return primary_language(language) not in _UNSPACED
