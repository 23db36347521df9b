"""A model that was trained and exported for real, served for real."""

from pathlib import Path

import pytest
import sacrebleu
from tests.conftest import WORDS
from tests.server.conftest import StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import EngineConfig


@pytest.mark.parametrize("precision", ["fp32", "int8"])
async def test_it_translates_and_aligns(
    start_server: StartServer, toy_models: Path, toy_folder: Path, precision: str
) -> None:
    engine = EngineConfig(device="cpu", threads=1, precision=precision)
    running = await start_server(models=toy_models, engine=engine)
    sources = (toy_folder / "test.de").read_text().splitlines()
    # All in one text, of which the white space stays.
    text = "\n ".join(sources)
    request = pb.TranslateRequest(
        texts=[text], source_language="de", target_language="en", return_alignments=True
    )
    (translation,) = (await running.stub.Translate(request)).translations
    references = (toy_folder / "test.en").read_text().splitlines()
    assert len(translation.text.split("\n ")) == translation.sentences == len(sources)
    score = sacrebleu.corpus_bleu(translation.text.split("\n "), [references]).score
    assert score > 60

    links = translation.hypotheses[0].alignments
    pairs = [
        (text[link.source_start : link.source_end], translation.text[link.target_start : link.target_end])
        for link in links
        if link.weight > 0.5
    ]
    right = sum(WORDS.get(source, source) == target for source, target in pairs)
    # One word in seven would be chance; a model of this size leans on the noun for its article.
    assert right > 0.5 * len(pairs)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
async def test_one_by_one_together_and_streamed_are_the_same(
    start_server: StartServer, toy_models: Path, toy_folder: Path, precision: str
) -> None:
    running = await start_server(
        models=toy_models, engine=EngineConfig(device="cpu", threads=1, precision=precision)
    )
    lines = (toy_folder / "test.de").read_text().splitlines()
    languages = {"source_language": "de", "target_language": "en"}
    together = await running.stub.Translate(pb.TranslateRequest(texts=lines, **languages))
    alone = [
        (await running.stub.Translate(pb.TranslateRequest(texts=[line], **languages))).translations[0]
        for line in lines
    ]
    config = pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**languages))
    items = [
        pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id=str(number), text=line))
        for number, line in enumerate(lines)
    ]
    call = running.stub.TranslateStream(iter([config, *items]))
    streamed = {int(response.id): response.translation async for response in call}
    for number, translation in enumerate(together.translations):
        for other in (alone[number], streamed[number]):
            assert other.text == translation.text
            tolerance = 1e-5 if precision == "fp32" else 1e-3
            assert other.hypotheses[0].score == pytest.approx(translation.hypotheses[0].score, abs=tolerance)
