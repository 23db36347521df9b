"""DeepL's API, by its own client."""

from collections.abc import Iterator

import deepl
import pytest
from tests.server.web.conftest import Web

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
    ("asked", "name"),
    [
        ({"formality": "more"}, "formality"),
        ({"context": "Im Park."}, "context"),
        ({"ignore_tags": ["x"]}, "ignore_tags"),
        ({"preserve_formatting": True}, "preserve_formatting"),
        ({"split_sentences": "nonewlines"}, "split_sentences"),
        ({"custom_instructions": ["Sing."]}, "custom_instructions"),
        ({"tag_handling": "sgml"}, "tag_handling"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_here_is_refused_by_name(
    client: deepl.DeepLClient, asked: dict[str, object], name: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=name) as caught:
        client.translate_text(DOG, target_lang="EN-GB", **asked)
    assert caught.value.http_status_code == 400


def test_unknown_languages_glossaries_and_paths_have_their_statuses(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match="fr") as caught:
        client.translate_text(DOG, source_lang="DE", target_lang="FR")
    assert caught.value.http_status_code == 400
    with pytest.raises(deepl.DeepLException, match="'none-such'") as caught:
        client.translate_text(DOG, source_lang="DE", target_lang="EN-GB", glossary="none-such")
    assert caught.value.http_status_code == 404
    with pytest.raises(deepl.DeepLException, match="v2/glossaries"):
        client.list_glossaries()
