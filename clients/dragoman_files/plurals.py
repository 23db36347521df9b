"""The plural forms of languages, for catalogues of gettext.

They are CLDR's as Babel 2.19 writes them (babel.messages.plurals, BSD licence), of the languages that GNU
gettext or ISO 639-1 names, without the form for whole millions, which gettext's own table has not.
"""

_SLAVIC = "n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2"
_FORMS = (
    (1, "0", "bm bo dz id ig ii ja jv ko lo ms my sg su th to vi wo yo yue zh"),
    (2, "(n > 1)", "ak am as bn fa ff fr gu hi hy kn ln mg pa pt si ti wa zu"),
    (3, _SLAVIC, "be bs hr ru sr uk"),
    (3, "(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2)", "cs sk"),
    (3, "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2)", "pl"),
    (3, "(n==1 ? 0 : n==0 || n!=1 && n%100>=1 && n%100<=19 ? 1 : 2)", "ro mo"),
    (
        3,
        "(n%10==1 && (n%100<11 || n%100>19) ? 0 : n%10>=2 && n%10<=9 && (n%100<11 || n%100>19) ? 1 : 2)",
        "lt",
    ),
    (3, "(n%10==0 || n%100>=11 && n%100<=19 ? 0 : n%10==1 && n%100!=11 ? 1 : 2)", "lv"),
    (3, "(n==1 ? 0 : n==2 ? 1 : 2)", "he iu se"),
    (2, "(n%10!=1 || n%100==11)", "is mk"),
    (4, "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)", "sl dsb hsb"),
    (4, "(n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n>=3 && n<=10 || n>=13 && n<=19 ? 2 : 3)", "gd"),
    (
        5,
        "(n==1 ? 0 : n==2 ? 1 : n==0 || n%100>=3 && n%100<=10 ? 2 : n%100>=11 && n%100<=19 ? 3 : 4)",
        "mt",
    ),
    (5, "(n==1 ? 0 : n==2 ? 1 : n>=3 && n<=6 ? 2 : n>=7 && n<=10 ? 3 : 4)", "ga"),
    (6, "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n==3 ? 3 : n==6 ? 4 : 5)", "cy"),
    (6, "(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5)", "ar"),
)
_BY_LANGUAGE = {
    language: (count, rule) for count, rule, languages in _FORMS for language in languages.split()
}


def plural_forms(language: str) -> tuple[int, str]:
    """The number of forms of a language, and which one a number takes; of an unknown one, those of most."""
    return _BY_LANGUAGE.get(language, (2, "(n != 1)"))
