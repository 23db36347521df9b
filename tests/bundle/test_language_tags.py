"""A language is written as BCP 47 does, and who writes it otherwise is told how."""

import pytest
from dragoman_bundle.errors import LanguageTagError
from dragoman_bundle.languages import check_language_tag, english_name


@pytest.mark.parametrize(
    "language",
    [
        *("de", "DE", "deu", "en-GB", "zh-Hant-TW", "es-419", "sl-rozaj-biske"),
        *("de-1996", "xxx", "de-u-co-phonebk"),
    ],
)
def test_a_tag_is_taken(language: str) -> None:
    check_language_tag("language", language)


@pytest.mark.parametrize(
    ("language", "meant"),
    [
        ("french", "fr"),
        ("French", "fr"),
        ("deutsch", "de"),
        ("Hawaiian", "haw"),
        ("suomi", "fi"),
        ("日本語", "ja"),
        ("fr_FR", "fr-FR"),
        ("FR_fr", "fr-FR"),
        (" de ", "de"),
        ("zh_hant_tw", "zh-Hant-TW"),
        ("portuguese_BR", "pt-BR"),
    ],
)
def test_what_was_meant_is_said(language: str, meant: str) -> None:
    with pytest.raises(LanguageTagError, match=rf'^language is {language!r}; .*: "{meant}"$'):
        check_language_tag("language", language)


@pytest.mark.parametrize(
    "language", ["klingonese", "", "d", "de--AT", "de-", "12", "cat_oci_spa_x_y_z", "本日"]
)
def test_of_what_is_no_language_the_form_is_shown(language: str) -> None:
    with pytest.raises(LanguageTagError, match=r'such as "fr" or "fr-FR"$'):
        check_language_tag("language", language)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("de", "German"),
        ("deu", "German"),
        ("as", "Assamese"),
        ("haw", "Hawaiian"),
        ("pt-BR", "Portuguese"),
        ("xxx", None),
    ],
)
def test_a_language_has_its_name(code: str, name: str | None) -> None:
    assert english_name(code) == name
