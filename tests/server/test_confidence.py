"""The confidence of translations: fitted by one command, given by a server, none where nobody has."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from dragoman_bundle import open_bundle
from dragoman_bundle.decoding import Confidence, Evidence
from sacrebleu.metrics.chrf import CHRF
from tests.server.conftest import StartServer
from tests.server.copying_bundle import MANIFEST, write_bundle
from tests.shipped import shipped_bundle

from dragoman import AsyncClient
from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.offline.system import open_bundle_system

ROOT = Path(__file__).parents[2]
WORDS = ROOT / "benchmarks/scenarios/shipped/words.de-en.tsv"
CONFIDENCE = Confidence(
    intercept=1.0, log_probability=2.0, shortness=3.0, repetition=-4.0, length_ratio=1.0, sentences=500
)


@pytest.fixture
def uncalibrated(tmp_path: Path) -> Path:
    """The shipped model as it is imported: without a confidence."""
    folder = shutil.copytree(shipped_bundle("de-en"), tmp_path / "de-en/1")
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"confidence": None}))
    return folder


def calibrate(folder: Path, pairs: list[tuple[str, str]]) -> tuple[int, str]:
    for side, texts in zip(("source", "reference"), zip(*pairs, strict=True), strict=True):
        (folder.parent / side).write_text("".join(f"{text}\n" for text in texts))
    files = "--source", str(folder.parent / "source"), "--reference", str(folder.parent / "reference")
    result = CliRunner().invoke(main, ["evaluate", "--bundle", str(folder), *files, "--calibrate"])
    return result.exit_code, result.output


def test_one_command_calibrates_a_model_on_two_files(uncalibrated: Path) -> None:
    # Of common words the model knows some and not others.
    lines = [line.split("\t") for line in WORDS.read_text().splitlines()[::4][:120]]
    pairs = [(word, translations.split("|")[0]) for word, translations in lines]
    before = open_bundle(uncalibrated).manifest
    code, output = calibrate(uncalibrated, pairs[:99])
    assert code == 1
    assert "99 sentences" in output
    assert open_bundle(uncalibrated).manifest == before
    code, output = calibrate(uncalibrated, pairs)
    assert code == 0, output
    manifest = open_bundle(uncalibrated).manifest
    assert manifest.confidence is not None
    assert manifest.confidence.sentences == 120
    assert manifest.checksum() == before.checksum()
    with open_bundle_system(
        str(uncalibrated),
        source_language=None,
        target_language=None,
        beam_size=5,
        device="cpu",
        precision="auto",
    ) as system:
        translated = system.translate_texts([word for word, _ in pairs])
    chrf = CHRF()
    is_good = [
        chrf.sentence_score(one.text, [reference]).score >= 50
        for one, (_, reference) in zip(translated, pairs, strict=True)
    ]
    assert 10 < sum(is_good) < 110
    confidences = [one.confidence or 0.0 for one in translated]
    # What a logistic regression has in common with what it was fitted to.
    assert sum(confidences) / 120 == pytest.approx(sum(is_good) / 120, abs=0.02)
    good = [each for each, is_one in zip(confidences, is_good, strict=True) if is_one]
    others = [each for each, is_one in zip(confidences, is_good, strict=True) if not is_one]
    assert sum(a > b for a in good for b in others) > 0.6 * len(good) * len(others)


async def test_texts_and_sentences_have_a_confidence(start_server: StartServer) -> None:
    running = await start_server(models=ROOT / "models")
    text = "Guten Morgen.  Verfahrensrechtliche Quasinormen bedingen Abschreibungsdifferenzen!"
    async with AsyncClient(f"localhost:{running.server.port}") as client:
        translation, nothing = await client.translate([text, "17"], source="de", target="en")
        assert {model.calibrated for model in await client.models()} == {True}
    first, second = translation.sentence_confidences
    spans = [(each.source_start, each.source_end) for each in (first, second)]
    assert [text[slice(*span)] for span in spans] == [text[:13], text[15:]]
    parts = translation.text[: first.target_end], translation.text[second.target_start :]
    assert "  ".join(parts) == translation.text
    assert 0 < second.confidence < 0.5 < first.confidence < 1
    mean = (13 * first.confidence + len(text[15:]) * second.confidence) / (13 + len(text[15:]))
    assert translation.confidence == pytest.approx(mean, rel=1e-5)
    assert (nothing.confidence, nothing.sentence_confidences) == (None, ())
    assert running.metric("dragoman_confidence_count", model="de-en") == 1
    assert running.metric("dragoman_confidence_sum", model="de-en") == pytest.approx(mean, rel=1e-5)


async def test_both_models_of_a_way_have_to_be_good(start_server: StartServer, tmp_path: Path) -> None:
    manifests = {
        "de-en": replace(MANIFEST, confidence=CONFIDENCE),
        "en-fr": replace(MANIFEST, confidence=CONFIDENCE),
        "en-nl": MANIFEST,
    }
    for name, manifest in manifests.items():
        write_bundle(tmp_path, f"{name}/1", name, manifest=manifest)
    running = await start_server(models=tmp_path, pivot="en")

    async def confidence(source: str, target: str) -> pb.Translation:
        request = pb.TranslateRequest(texts=["Ja. Nein."], source_language=source, target_language=target)
        return (await running.stub.Translate(request)).translations[0]

    first, second, both = [await confidence(*way) for way in (("de", "en"), ("en", "fr"), ("de", "fr"))]
    assert both.confidence == pytest.approx(first.confidence * second.confidence, rel=1e-5)
    assert 0 < both.confidence < first.confidence
    assert len(second.sentence_confidences) == 2
    assert not both.sentence_confidences
    for way in (("en", "nl"), ("de", "nl")):
        translation = await confidence(*way)
        assert not translation.HasField("confidence")
        assert not translation.sentence_confidences


def test_confidence_is_a_probability_however_sure_or_unsure() -> None:
    # An unsure token, a cut half and a repeated word each speak against a translation.
    usual = Evidence(log_probability=-0.2, shortness=0.0, repetition=0.0)
    for worse in ({"log_probability": -1.0}, {"shortness": -0.7}, {"repetition": 0.2}):
        assert CONFIDENCE.probability(replace(usual, **worse)) < CONFIDENCE.probability(usual)
    assert CONFIDENCE.probability(replace(usual, log_probability=-1e300)) == 0
    assert CONFIDENCE.probability(replace(usual, log_probability=1e300)) == 1
    assert CONFIDENCE.probability(Evidence(log_probability=0, shortness=0, repetition=0)) == (
        pytest.approx(0.731058578)
    )
