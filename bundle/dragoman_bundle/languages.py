"""What must be known of a language beside its code."""

import functools
import re

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
# Of ISO 639-2 and 639-3, as checkpoints often have them, and of 639-1, which rules are kept under.
# Languages of many, such as Arabic, are also called by the member that is most of them.
_LONG_AND_SHORT = """
aar:aa abk:ab afr:af aka:ak alb:sq als:sq amh:am ara:ar arb:ar arg:an arm:hy asm:as ava:av aym:ay ayr:ay
aze:az azj:az bak:ba bam:bm baq:eu bel:be ben:bn bis:bi bod:bo bos:bs bre:br bul:bg bur:my cat:ca ces:cs
cha:ch che:ce chi:zh chv:cv cmn:zh cor:kw cos:co cre:cr cym:cy cze:cs dan:da deu:de div:dv dut:nl dzo:dz
ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr fre:fr fry:fy ful:ff fuv:ff
gaz:om geo:ka ger:de gla:gd gle:ga glg:gl glv:gv gre:el grn:gn guj:gu hat:ht hau:ha heb:he her:hz hin:hi
hmo:ho hrv:hr hun:hu hye:hy ibo:ig ice:is ido:io iii:ii iku:iu ile:ie ina:ia ind:id ipk:ik isl:is ita:it
jav:jv jpn:ja kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khk:mn khm:km kik:ki kin:rw kir:ky kmr:ku knc:kr
kom:kv kon:kg kor:ko kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln lit:lt ltz:lb lub:lu lug:lg lvs:lv
mac:mk mah:mh mal:ml mao:mi mar:mr may:ms mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms mya:my nau:na nav:nv
nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb nor:no npi:ne nya:ny oci:oc oji:oj ori:or orm:om ory:or
oss:os pan:pa pbt:ps per:fa pes:fa pli:pi plt:mg pol:pl por:pt pus:ps que:qu quy:qu roh:rm ron:ro rum:ro
run:rn rus:ru sag:sg san:sa sin:si slk:sk slo:sk slv:sl sme:se smo:sm sna:sn snd:sd som:so sot:st spa:es
sqi:sq srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv swh:sw tah:ty tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th
tib:bo tir:ti ton:to tsn:tn tso:ts tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzb:uz uzn:uz ven:ve vie:vi
vol:vo wel:cy wln:wa wol:wo xho:xh ydd:yi yid:yi yor:yo zha:za zho:zh zsm:ms zul:zu
"""
_SHORT = dict(pair.split(":") for pair in _LONG_AND_SHORT.split())
# The script of who names none, as CLDR has it; that of all others is Latin.
_SCRIPT_OF = """
acm:arab acq:arab aeb:arab ajp:arab am:ethi apc:arab ar:arab ars:arab ary:arab arz:arab as:beng awa:deva
az-ir:arab azb:arab ba:cyrl be:cyrl bg:cyrl bho:deva bn:beng bo:tibt ce:cyrl ckb:arab cv:cyrl dv:thaa dz:tibt
el:grek fa:arab gu:gujr he:hebr hi:deva hne:deva hy:armn ja:jpan ka:geor kk-cn:arab kk:cyrl km:khmr kn:knda
ko:kore ks:arab ku-iq:arab ky:cyrl lo:laoo mag:deva mai:deva mk:cyrl ml:mlym mn-cn:mong mn:cyrl mni:beng
mr:deva my:mymr ne:deva or:orya os:cyrl pa-pk:arab pa:guru prs:arab ps:arab ru:cyrl sa:deva sat:olck
sd-in:deva sd:arab shn:mymr si:sinh sr-me:latn sr:cyrl ta:taml te:telu tg:cyrl th:thai ti:ethi tt:cyrl
tzm:tfng ug:arab uk:cyrl ur:arab uz-af:arab yi:hebr yue-cn:hans yue:hant zh-hk:hant zh-mo:hant zh-tw:hant
zh:hans
"""
_SCRIPTS = dict(pair.split(":") for pair in _SCRIPT_OF.split())


@functools.lru_cache(256)
def primary_language(language: str) -> str:
    """The code that rules of a language are kept under: "de" of "de", "DE-at", "de_AT" and "deu"."""
    primary = re.split("[-_]", language.lower(), maxsplit=1)[0]
    return _SHORT.get(primary, primary)


def writes_spaces(language: str) -> bool:
    """Whether words, and sentences, stand apart; `language` is a code as `check_language` takes it."""
    return primary_language(language) not in _UNSPACED


def usual_script(language: str, region: str = "") -> str:
    """The script of who names none, in small letters; `language` is as `primary_language` gives it."""
    return _SCRIPTS.get(f"{language}-{region}") or _SCRIPTS.get(language, "latn")
