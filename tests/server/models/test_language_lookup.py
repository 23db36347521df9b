"""Which language a caller gets who writes it otherwise than the model's maker, or asks for a close one."""

import pytest

from dragoman_server.models.language_lookup import distance


def closest(wanted: str, *available: str) -> str | None:
    """Of the languages that there are."""
    found = {there: distance(wanted, there) for there in available}
    served = {there: distance for there, distance in found.items() if distance is not None}
    return min(served, key=lambda there: served[there], default=None)


@pytest.mark.parametrize(
    "wanted",
    [
        *("de", "DE", " de ", "de\n", "de-DE", "de_DE", "de-DE-1996", "deu", "ger", "DEU_de", "de-Latn-AT"),
        *("de-x-formal", "de-DE-u-co-phonebk", "de-CH-1901-x-a-b"),
    ],
)
def test_a_language_is_found_however_it_is_written(wanted: str) -> None:
    assert closest(wanted, "en", "de", "nl") == "de"


@pytest.mark.parametrize(
    ("wanted", "available", "expected"),
    [
        # The range loses its end until there is one of it.
        ("zh-Hant-TW", ("zh", "zh-Hant", "zh-Hant-TW"), "zh-Hant-TW"),
        ("zh-Hant-HK", ("zh", "zh-Hant", "zh-Hant-TW"), "zh-Hant"),
        ("pt-BR", ("pt-PT", "pt", "pt-BR"), "pt-BR"),
        ("pt-BR", ("pt-PT", "pt"), "pt"),
        ("de-1901", ("de-1996", "de", "de-1901"), "de-1901"),
        ("sl-rozaj-biske", ("sl", "sl-rozaj"), "sl-rozaj"),
        # Then what is more special, and then what another region writes.
        ("en", ("de", "en-GB"), "en-GB"),
        ("eng", ("en_GB",), "en_GB"),
        ("en-US", ("en-GB", "de"), "en-GB"),
        ("es-MX", ("es-ES", "es-419", "es"), "es"),
        # What is no tag is found as it is.
        ("cat_oci_spa", ("ca", "cat_oci_spa"), "cat_oci_spa"),
        ("CAT-oci-spa", ("cat_oci_spa",), "cat_oci_spa"),
        # What is called otherwise today, and what stands for itself.
        ("iw", ("he",), "he"),
        ("zh-yue", ("zh", "yue"), "yue"),
        ("zh-cmn-Hans", ("zh",), "zh"),
        ("cmn-Hans", ("zh-Hans",), "zh-Hans"),
    ],
)
def test_the_closest_is_taken(wanted: str, available: tuple[str, ...], expected: str) -> None:
    assert closest(wanted, *available) == expected
    assert closest(wanted, *reversed(available)) == expected


@pytest.mark.parametrize(
    ("wanted", "available"),
    [
        ("zh-Hant", "zh-Hans"),
        ("zh-Hant", "zh"),
        ("zh-TW", "zh-Hans"),
        ("zh-TW", "zh-CN"),
        ("zh-TW", "zh"),
        ("zh-Hans", "zh-Hant"),
        ("zh", "zh-Hant"),
        ("sr-Latn", "sr"),
        ("uz-Cyrl", "uz"),
        ("ja-Latn", "ja"),
        ("pa-PK", "pa"),
        ("de-1901", "de-1996"),
        ("ca", "ca-valencia"),
        ("ca", "cat_oci_spa"),
        ("ca-oci", "ca"),
        ("yue", "zh"),
        ("d", "de"),
        ("deutsch", "de"),
        ("de-", "de"),
        ("de--DE", "de"),
        ("en", "de"),
        ("", "de"),
        ("-", "de"),
        ("de" * 10_000, "de"),
    ],
)
def test_another_language_script_or_variant_is_never_taken(wanted: str, available: str) -> None:
    assert distance(wanted, available) is None


@pytest.mark.parametrize(
    ("wanted", "available"), [("zh-CN", "zh"), ("zh-CN", "zh-Hans"), ("zh-SG", "zh"), ("zh-HK", "zh-TW")]
)
def test_a_region_tells_the_script(wanted: str, available: str) -> None:
    assert distance(wanted, available) is not None
