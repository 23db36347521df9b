"""A model that really was trained answers as CTranslate2 does, as its reference and as a bundle."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from dragoman_bundle import open_bundle, search
from tests.export.foreign.forced import log_probabilities, open_reference

from dragoman_export.get.cli import get
from dragoman_export.importers.argos import load_ctranslate2
from dragoman_export.model import Subject
from dragoman_export.parity.loss import score_alone
from dragoman_export.parity.onnx_stepper import OnnxStepper

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "ctranslate2-aren"
"""A Transformer of 6+6 layers that spells Arabic names in Latin letters, and CTranslate2's answers."""
NAMES = ("aren-transliteration", "aren-transliteration-i16", "aren-transliteration-i8")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the trained model is not here")


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "parity.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module", params=NAMES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return load_ctranslate2(FOLDER / request.param, source_language="ar", target_language="en")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the model in float."""
    folder = tmp_path_factory.mktemp("models") / "ar-en" / "1"
    languages = ["--source-language", "ar", "--target-language", "en"]
    arguments = [str(FOLDER / NAMES[0]), *languages, "--precisions", "fp32"]
    result = CliRunner().invoke(get, [*arguments, "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


def runs(answers: dict[str, Any], name: str, beam_size: int) -> list[dict[str, Any]]:
    """What CTranslate2 answers to each name, computing in float32."""
    (found,) = (
        run["results"]
        for run in answers["runs"]
        if (run["model"], run["beam_size"], run["compute_type_asked"]) == (name, beam_size, "float32")
    )
    assert len(found) == 20
    return list(found)


def name_of(subject: Subject) -> str:
    return next(name for name in reversed(NAMES) if f"format, {name}." in subject.card.description)


def spelling(subject: Subject, source: str, target: str) -> list[float]:
    """The log-probabilities of each token of a target and of its end."""
    (ids,), (target_ids,) = (
        tokenizer.encode_ids([text])
        for tokenizer, text in ((subject.source_tokenizer, source), (subject.target_tokenizer, target))
    )
    return log_probabilities(subject, ids, target_ids)


def decode(
    subject: Subject, stepper: Any, sources: list[str], beam_size: int
) -> list[list[search.Hypothesis]]:
    decoding = replace(subject.decoding, beam_size=beam_size, length_penalty=1.0)
    return search.beam_search(stepper, subject.source_tokenizer.encode_ids(sources), decoding)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_reference_spells_every_name_as_ctranslate2_does(
    answers: dict[str, Any], subject: Subject, beam_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By which they rank hypotheses.
    monkeypatch.setattr(search, "length_penalty", lambda num_tokens, alpha: float(num_tokens**alpha))
    expected = runs(answers, name_of(subject), beam_size)
    found = decode(subject, open_reference(subject), [run["source"] for run in expected], beam_size)
    for run, hypotheses in zip(expected, found, strict=True):
        theirs, ours = run["hypotheses"][0], hypotheses[0]
        assert [subject.target_tokenizer.piece(id_) for id_ in ours.tokens] == theirs["tokens"]
        assert ours.score == pytest.approx(theirs["score"], abs=1e-4)


def test_every_token_has_the_probability_that_ctranslate2_gives_it(
    answers: dict[str, Any], exported: Path
) -> None:
    subject = load_ctranslate2(FOLDER / NAMES[0], source_language="ar", target_language="en")
    source, target = subject.source_tokenizer, subject.target_tokenizer
    stepper = OnnxStepper.between(source, target, exported / "fp32")
    largest = 0.0
    for run in answers["score_batch_float32_of_greedy"]:
        found = spelling(subject, run["source"], run["target"])
        assert found == pytest.approx(run["log_probs"], abs=1e-4)
        largest = max(largest, *np.abs(np.subtract(found, run["log_probs"])))
        ids = [*target.encode_ids([run["target"]])[0], target.eos_id]
        prefixes = [ids[: length + 1] for length in range(len(ids))]
        sums = score_alone(stepper, source.encode_ids([run["source"]]) * len(ids), prefixes)
        assert np.diff(sums, prepend=0) == pytest.approx(run["log_probs"], abs=1e-4)
    assert largest > 0


def test_every_hypothesis_has_the_score_that_ctranslate2_gives_it(
    answers: dict[str, Any], subject: Subject
) -> None:
    for run in runs(answers, name_of(subject), beam_size=4):
        for hypothesis in run["hypotheses"]:
            found = spelling(subject, run["source"], hypothesis["text"])
            assert np.mean(found) == pytest.approx(hypothesis["score"], abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_bundle_spells_every_name_as_ctranslate2_does(
    answers: dict[str, Any], exported: Path, beam_size: int
) -> None:
    bundle = open_bundle(exported)
    subject = load_ctranslate2(FOLDER / NAMES[0], source_language="ar", target_language="en")
    stepper = OnnxStepper.between(bundle.source_tokenizer, bundle.target_tokenizer, exported / "fp32")
    expected = runs(answers, NAMES[0], beam_size)
    found = decode(subject, stepper, [run["source"] for run in expected], beam_size)
    for run, hypotheses in zip(expected, found, strict=True):
        text = bundle.target_tokenizer.decode_text(list(hypotheses[0].tokens))
        assert text == run["hypotheses"][0]["text"]
    assert not bundle.manifest.source_end
