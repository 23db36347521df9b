"""DeepL's API, by its own client."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlencode

import deepl
import pytest
from dragoman_bundle.tokenizers.tokenizer import FORMAL, INFORMAL
from tests.server.conftest import CPU
from tests.server.copying_bundle import write_bundle
from tests.server.web.conftest import Web, ask, serving

DOG = "Der Hund schläft im Garten."


@pytest.fixture
def client(web: Web, monkeypatch: pytest.MonkeyPatch) -> Iterator[deepl.DeepLClient]:
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)
    with_key = deepl.DeepLClient("nobody asks", server_url=web.url)
    yield with_key
    with_key.close()


def test_its_own_client_translates_and_detects(client: deepl.DeepLClient) -> None:
    first, second = client.translate_text([DOG, "Good morning."], target_lang="EN-GB")
    assert (first.text, first.detected_source_lang) == ("The dog is sleeping in the garden.", "DE")
    assert (second.text, second.detected_source_lang) == ("Good morning.", "EN")
    assert first.billed_characters == len(DOG)


def test_tags_glossaries_and_sentences_are_as_asked(client: deepl.DeepLClient) -> None:
    for kind in ("html", "xml"):
        result = client.translate_text("<b>Guten</b> Morgen.", target_lang="EN-US", tag_handling=kind)
        assert "<b>" in result.text
    named = client.translate_text(DOG, source_lang="DE", target_lang="EN-US", glossary="house")
    assert "hound" in named.text
    for split in ("0", "1"):
        assert client.translate_text(DOG, target_lang="EN-US", split_sentences=split).text


def test_its_own_client_lists_languages_and_usage(client: deepl.DeepLClient) -> None:
    assert [each.code for each in client.get_source_languages()] == ["DE", "EN"]
    assert [each.code for each in client.get_target_languages()] == ["DE", "EN-GB", "EN-US"]
    before = client.get_usage().character.count
    client.translate_text(DOG, target_lang="EN-GB")
    assert client.get_usage().character.count == before + len(DOG)


@pytest.mark.parametrize(
    ("formality", "tag"),
    [
        ("more", FORMAL),
        ("less", INFORMAL),
        ("prefer_more", FORMAL),
        ("prefer_less", INFORMAL),
        ("default", ""),
    ],
)
def test_formality_is_the_tag_of_a_model_that_knows_it(polite: Web, formality: str, tag: str) -> None:
    client = deepl.DeepLClient("nobody asks", server_url=polite.url)
    try:
        assert client.get_target_languages()[0].supports_formality
        found = client.translate_text("Ja.", source_lang="DE", target_lang="EN-GB", formality=formality)
    finally:
        client.close()
    assert isinstance(found, deepl.TextResult)
    assert found.text == f"{tag} Ja.".strip()


@pytest.fixture(scope="module")
def polite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server whose model copies, tags too."""
    models = tmp_path_factory.mktemp("polite")
    write_bundle(models, tags=(FORMAL, INFORMAL))
    with serving(models=models, engine=CPU) as web:
        yield web


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"formality": "more"}, "formality"),
        ({"formality": "less"}, "formality"),
        ({"style_rule": "mine"}, "style_id"),
        ({"custom_instructions": ["Sing."]}, "custom_instructions"),
        ({"tag_handling": "sgml"}, "tag_handling"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_here_is_refused(client: deepl.DeepLClient, asked: dict[str, object], name: str) -> None:
    with pytest.raises(deepl.DeepLException, match=name) as caught:
        client.translate_text(DOG, target_lang="EN-GB", **asked)
    assert caught.value.http_status_code == 400
    with pytest.raises(deepl.DeepLException, match="split_sentences"):
        client.translate_text("Der Hund\nschläft.", target_lang="EN-GB", split_sentences="nonewlines")


@pytest.mark.parametrize(
    "asked",
    [
        {"context": "Im Park."},
        {"formality": "prefer_more"},
        {"model_type": "quality_optimized"},
        {"non_splitting_tags": ["x", "y"], "splitting_tags": "p", "tag_handling": "xml"},
        {"outline_detection": False, "tag_handling": "xml"},
        {"preserve_formatting": True},
        {"split_sentences": "0"},
        {"split_sentences": "1", "tag_handling": "html"},
        {"split_sentences": "nonewlines"},
        {"tag_handling": "xml", "tag_handling_version": "v2"},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_advice_is_taken(client: deepl.DeepLClient, asked: dict[str, object]) -> None:
    result = client.translate_text(DOG, target_lang="EN-GB", **asked)
    assert result.text == "The dog is sleeping in the garden."


def test_the_text_of_ignored_tags_stays(client: deepl.DeepLClient) -> None:
    for tags in (["x", "keep"], "x,keep"):
        result = client.translate_text(
            ["Der Hund <x>schläft</x>.", "Ich mag <keep>Brot</keep> sehr.", "<b>Ja</b> <X/>."],
            source_lang="DE",
            target_lang="EN-GB",
            tag_handling="xml",
            ignore_tags=tags,
        )
        texts = [each.text for each in result]
        assert "<x>schläft</x>" in texts[0]
        assert "<keep>Brot</keep>" in texts[1]
        assert texts[2].count("<X/>") == 1


def test_weblate_gets_its_translations(web: Web) -> None:
    """Its requests as weblate/machinery/deepl.py makes them, with a placeholder taken out of a string."""
    key = {"Authorization": "DeepL-Auth-Key any"}
    languages = [web.get(f"/v2/languages?type={kind}", **key).json for kind in ("source", "target")]
    assert {"DE"} <= {each["language"] for each in languages[0]}
    pairs = web.get("/v2/glossary-language-pairs", **key).json["supported_languages"]
    assert {"source_lang": "DE", "target_lang": "EN"} in [
        {name: code.upper() for name, code in pair.items()} for pair in pairs
    ]
    assert web.get("/v2/glossaries", **key).json["glossaries"][0]["name"] == "house"
    asked = {
        "text": ["Ich mag Brot.", 'Hallo <x id="6"></x>, du hast <x id="20"></x> neue Nachrichten.'],
        "source_lang": "DE",
        "target_lang": "EN",
        "formality": "default",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
    }
    answer = web.post("/v2/translate", asked, **key)
    assert answer.status == 200
    bread, news = (each["text"] for each in answer.json["translations"])
    assert bread == "I like bread."
    # Neither at the front nor behind the other: each where it stood.
    assert re.fullmatch(r'\S.*<x id="6"></x>\W+\w.*<x id="20"></x>.*\w.*', news), news


def test_omegat_gets_its_translations(web: Web) -> None:
    """Its requests as its connectors make them: a form, and in its own distribution a query."""
    asked = {
        "auth_key": "any",
        "preserve_formatting": "1",
        "source_lang": "DE",
        "split_sentences": "1",
        "tag_handling": "xml",
        "target_lang": "EN",
        "text": "Ich mag <g0>Brot</g0>.",
    }
    for split in ("0", "1"):
        form = urlencode(asked | {"split_sentences": split})
        for answer in (
            ask(f"{web.url}/v2/translate", form.encode()),
            ask(f"{web.url}/v2/translate?{form}"),
            ask(f"{web.url}/v1/translate?{form}"),
        ):
            assert answer.json["translations"][0]["text"] == "I like <g0>bread</g0>."


def test_its_own_client_reads_and_uses_glossaries(client: deepl.DeepLClient) -> None:
    there, back = client.list_glossaries()
    assert (there.name, there.source_lang, there.target_lang, there.entry_count) == ("house", "DE", "EN", 1)
    assert (back.source_lang, back.target_lang) == ("EN", "DE")
    assert there.ready
    assert abs((datetime.now(UTC) - there.creation_time).total_seconds()) < 3600
    assert client.get_glossary(there.glossary_id).name == "house"
    assert client.get_glossary_entries(there) == {"Hund": "hound"}
    assert client.get_glossary_entries(back) == {"hound": "Hund"}
    pairs = [(each.source_lang, each.target_lang) for each in client.get_glossary_languages()]
    assert pairs == [("de", "en"), ("en", "de")]
    # In another form of the word, too.
    for text in (DOG, "Die Hunde schlafen."):
        named = client.translate_text(text, source_lang="DE", target_lang="EN-US", glossary=there)
        assert "hound" in named.text
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary("none:de:en")
    with pytest.raises(deepl.DeepLException, match="files of its own"):
        client.create_glossary("mine", "DE", "EN", {"Hund": "hound"})


def test_unknown_languages_glossaries_and_paths_have_their_statuses(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="fr") as caught:
        client.translate_text(DOG, source_lang="DE", target_lang="FR")
    assert caught.value.http_status_code == 400
    with pytest.raises(deepl.DeepLException, match="'none-such'") as caught:
        client.translate_text(DOG, source_lang="DE", target_lang="EN-GB", glossary="none-such")
    assert caught.value.http_status_code == 404
    with pytest.raises(deepl.DeepLException, match="v2/none"):
        client._raise_for_status(*client._api_call("v2/none", method="GET"))
