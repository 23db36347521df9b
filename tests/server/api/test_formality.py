"""Formal and informal address: a tag before each source of a model that was trained with them."""

from pathlib import Path

import pytest
from dragoman_bundle.tokenizers.tokenizer import FIRST_TAG, FORMAL, INFORMAL, LAST_TAG
from tests.server.calls import GERMAN, translate, violated_fields
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.text.read.clean import clean, for_tokenizer

FORMALITIES = [(pb.FORMALITY_FORMAL, FORMAL), (pb.FORMALITY_INFORMAL, INFORMAL)]


@pytest.fixture
async def tagged(tmp_path: Path, start_server: StartServer) -> RunningServer:
    """Its model copies, tags too, so that a translation shows what the model has read."""
    write_bundle(tmp_path / "tagged", tags=(FORMAL, INFORMAL))
    return await start_server(models=tmp_path / "tagged")


@pytest.mark.parametrize(("formality", "tag"), FORMALITIES)
async def test_each_sentence_is_read_behind_the_tag(
    tagged: RunningServer, formality: pb.Formality, tag: str
) -> None:
    options = pb.DecodingOptions(formality=formality)
    (found,) = await translate(tagged, "Kommen. Gehen.", options=options, return_alignments=True)
    assert found.text == f"{tag} Kommen. {tag} Gehen."
    text, output = "Kommen. Gehen.", found.text
    links = {
        (text[link.source_start : link.source_end], output[link.target_start : link.target_end])
        for link in found.hypotheses[0].alignments
    }
    assert ("Kommen", "Kommen") in links
    assert ("Gehen", "Gehen") in links


async def test_without_it_no_source_has_a_tag_though_a_caller_writes_one(tagged: RunningServer) -> None:
    plain, odd = await translate(tagged, "Kommen.", f"{FORMAL} Kommen.")
    assert plain.text == "Kommen."
    assert odd.text == f"{FORMAL} Kommen."


@pytest.mark.parametrize("tag", [FIRST_TAG, FORMAL, INFORMAL, LAST_TAG])
def test_no_tokenizer_reads_a_tag_that_a_caller_writes(tag: str) -> None:
    cleaned = clean(f"a{tag}b\u2010c")
    assert cleaned.text == f"a{tag}b\u2010c"
    assert len(for_tokenizer(cleaned.text)) == len(cleaned.text)
    assert tag not in for_tokenizer(cleaned.text)


async def test_a_model_that_was_not_trained_for_it_refuses_it(running: RunningServer) -> None:
    options = pb.DecodingOptions(formality=pb.FORMALITY_FORMAL)
    request = pb.TranslateRequest(texts=["Ja."], **GERMAN, options=options)
    assert await violated_fields(running, request) == ["options.formality"]
