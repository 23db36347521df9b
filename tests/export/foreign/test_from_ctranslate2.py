"""Models in CTranslate2's format, of every form that it has or had, become the same models of ours."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dragoman_bundle import Bundle, search
from sentencepiece import sentencepiece_model_pb2
from tests.export.commands import got
from tests.export.ctranslate2_model import TARGET, Form, write_model
from tests.export.foreign.imported import imported, log_probabilities, open_reference

from dragoman_export.graphs.step_end import searchable_size
from dragoman_export.importers.ctranslate2 import load_ctranslate2
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.reading import Reading
from dragoman_export.model import Subject
from dragoman_export.parity.loss import score_alone
from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.reference.imported import TransformerArchitecture
from dragoman_export.reference.model import ReferenceSteps

spm: Any = sentencepiece_model_pb2  # Made by protobuf as it is imported: nothing tells its types.
VERSIONS, NUMBERS = (2, 3, 4, 5, 6), ("float32", "float16", "bfloat16", "int16", "int8")
FORMATS = [
    (version, numbers)
    for version, numbers in product(VERSIONS, NUMBERS)
    # Before version 4 numbers of two bytes are int16.
    if not (version < 4 and numbers.endswith("float16"))
]
FLAGS = list(product((False, True), repeat=4))
PAIRS = [([3, 5, 4, 7, 3], [4, 3, 9]), ([6], []), ([8, 3, 3, 8, 9, 5, 4, 10], [5, 5, 8, 7, 3, 6, 4])]
"""Sources and targets, as ids."""


def load(folder: Path) -> Subject:
    return load_ctranslate2(folder, Reading(source_language="de", target_language="en"))


Answers = dict[str, Any]


def scale_of(subject: Subject) -> float:
    architecture = imported(subject).architecture
    assert isinstance(architecture, TransformerArchitecture)
    return architecture.embedding_scale


def assert_kept(folder: Path, form: Form) -> None:
    """Writes and loads a model of the form, and holds the one against the other."""
    model = write_model(folder, form)
    subject = load(folder)
    for source, target in PAIRS:
        expected = model.log_probabilities(source, target, eos=2)
        assert log_probabilities(subject, source, target) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("version", "numbers"), FORMATS)
def test_every_form_is_the_model_that_it_was(version: int, numbers: str, tmp_path: Path) -> None:
    # Names of variables follow from flags and versions, and numbers are read alike whatever they are of.
    for number, flags in enumerate(FLAGS if numbers == "float32" else FLAGS[::5]):
        named = dict(
            zip(("is_pre_norm", "has_learned_positions", "is_tied", "is_shared"), flags, strict=True)
        )
        assert_kept(tmp_path / str(number), Form(version=version, numbers=numbers, **named))


@pytest.mark.parametrize("activation", range(5))
def test_activations_are_those_of_its_numbers(activation: int, tmp_path: Path) -> None:
    assert_kept(tmp_path, Form(activation=activation))


@pytest.mark.parametrize("epsilon", [0.3, 1e-6])
def test_what_is_added_to_a_variance_is_what_config_json_says(epsilon: float, tmp_path: Path) -> None:
    assert_kept(tmp_path, Form(config={"layer_norm_epsilon": epsilon}))


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_decoder_that_starts_from_zero_has_a_token_more(is_shared: bool, tmp_path: Path) -> None:
    assert_kept(tmp_path, Form(starts_from_zero=True, is_shared=is_shared, is_pre_norm=False))
    subject = load(tmp_path)
    assert subject.target_tokenizer.bos_id == len(TARGET) + 1
    size = subject.target_tokenizer.vocabulary_size
    assert size == searchable_size(len(TARGET) + 2)
    reference = subject.model.reference()
    scores = ReferenceSteps(reference, [[3, 5]], 0).step(np.array([[reference.bos]]))[0]
    assert scores.shape[1] == size
    assert (scores[0, reference.bos :] < -1000).all()
    # Marian's models alone start so, and their sources end, whatever config.json says.
    assert subject.source_end


def test_a_source_ends_where_the_model_says_so(tmp_path: Path) -> None:
    for is_ended in (False, True):
        write_model(tmp_path / str(is_ended), Form(config={"add_source_eos": is_ended}))
        assert load(tmp_path / str(is_ended)).source_end is is_ended
    write_model(tmp_path / "5", Form(version=5, more={"with_source_eos": np.array(1, np.int8)}))
    assert load(tmp_path / "5").source_end


def test_older_models_tell_their_tokens_in_variables(tmp_path: Path) -> None:
    write_model(tmp_path, Form(version=5, more={"with_target_bos": np.array(0, np.int8)}))
    subject = load(tmp_path)
    assert subject.target_tokenizer.bos_id == subject.target_tokenizer.eos_id == 2


def test_embeddings_are_multiplied_by_what_the_model_says(tmp_path: Path) -> None:
    flags = {f"{side}/scale_embeddings": np.array(0, np.int8) for side in ("encoder", "decoder")}
    write_model(tmp_path, Form(more=flags))
    assert scale_of(load(tmp_path)) == 1
    write_model(tmp_path, Form(more={name: np.array(3, np.float32) for name in flags}))
    assert scale_of(load(tmp_path)) == 3


@pytest.mark.parametrize(
    ("form", "precisions"),
    [
        pytest.param(
            Form(version=2, numbers="int16", has_learned_positions=True), "fp32,int8", marks=pytest.mark.long
        ),
        (Form(version=6, numbers="int8", is_pre_norm=False, is_shared=True, is_tied=False), "fp32"),
    ],
)
def test_a_bundle_gives_tokens_the_probability_that_they_had(
    form: Form, precisions: str, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "m", form)
    folder = tmp_path / "models" / "de-en" / "1"
    languages = ["--source-language", "de", "--target-language", "en"]
    bundle = got(tmp_path / "m", folder, "--precisions", precisions, *languages)
    stepper = OnnxStepper.between(bundle.source_tokenizer, bundle.target_tokenizer, folder / "fp32")
    for source, target in PAIRS:
        expected = model.log_probabilities(source, target, eos=2)
        prefixes = [[*target, 2][: length + 1] for length in range(len(target) + 1)]
        sums = score_alone(stepper, [source] * len(prefixes), prefixes)
        assert np.diff(sums, prepend=0) == pytest.approx(expected, abs=1e-4)
    card = (folder / "README.md").read_text()
    assert "dragoman get m --source-language de --target-language en \\\n  --out" in card
    assert (bundle.manifest.source_language, bundle.manifest.target_language) == ("de", "en")


def test_letters_need_no_tokenizer(tmp_path: Path) -> None:
    write_model(tmp_path, Form())
    source, target = load(tmp_path).source_tokenizer, load(tmp_path).target_tokenizer
    assert source.encode_ids(["abj", "a☃"]) == [[3, 4, 12], [3, 13]]
    assert target.decode_text([3, 10]) == "kr"


@pytest.mark.parametrize(
    "names",
    [("source.spm", "target.spm"), ("src.spm.model", "tgt.spm.model"), ("joint.spm.model",), ("shared.spm",)],
)
def test_sentencepiece_models_are_found_by_the_names_that_makers_give_them(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    write_model(tmp_path, Form(is_shared=len(names) == 1))
    # Without any, as here, where all tokens are letters, one is made.
    made = load(tmp_path)
    models = [made.source_tokenizer.model, made.target_tokenizer.model]
    for name, model in zip(names, models, strict=False):
        (tmp_path / name).write_bytes(unchanging(model))
    found = load(tmp_path)
    assert [found.source_tokenizer.model, found.target_tokenizer.model] == list(map(unchanging, models))
    assert found.source_tokenizer.encode_ids(["abc"]) == made.source_tokenizer.encode_ids(["abc"])


def unchanging(model: bytes) -> bytes:
    """The same sentencepiece model in other bytes, to know it by."""
    proto = spm.ModelProto.FromString(model)
    proto.normalizer_spec.name = "of this test"
    return bytes(proto.SerializeToString())


def test_a_model_of_many_languages_is_told_them_by_its_vocabulary(tmp_path: Path) -> None:
    form = Form(is_shared=True, has_learned_positions=True, config={"decoder_start_token": "</s>"})
    write_model(tmp_path, form)
    file = tmp_path / "shared_vocabulary.json"
    letters = load(tmp_path).target_tokenizer.model
    tokens = ["deu_Latn", "eng_Latn", *json.loads(file.read_text())[2:]]
    file.write_text(json.dumps(tokens))
    (tmp_path / "sentencepiece.bpe.model").write_bytes(letters)
    with pytest.raises(FormatError, match=r"is of many languages.* leave --source-language out"):
        load(tmp_path)
    subject = load_ctranslate2(tmp_path)
    assert subject.languages == {"de": "deu_Latn", "en": "eng_Latn"}
    assert (subject.source_language, subject.source_end) == ("mul", True)
    bundle = got(tmp_path, tmp_path / "many" / "1", "--precisions", "fp32").between("de", "en")
    assert bundle.target_start == (tokens.index("eng_Latn"),)
    assert bundle.source_tokenizer.encode_ids(["kl"])[0][0] == tokens.index("deu_Latn")
    assert bundle.manifest.target_ids.bos == bundle.manifest.target_ids.eos == 2


FOLDER = Path(__file__).parents[4] / "shared" / "data" / "ctranslate2-aren"
"""A Transformer of 6+6 layers that spells Arabic names in Latin letters, and CTranslate2's answers."""
NAMES = ("aren-transliteration", "aren-transliteration-i16", "aren-transliteration-i8")

trained = pytest.mark.skipif(not FOLDER.is_dir(), reason="the trained model is not here")


def load_arabic(name: str) -> Subject:
    return load_ctranslate2(FOLDER / name, Reading(source_language="ar", target_language="en"))


@pytest.fixture(scope="module")
def answers() -> Answers:
    return json.loads((FOLDER / "parity.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=NAMES)
def subject(request: pytest.FixtureRequest) -> Subject:
    return load_arabic(request.param)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The model in float."""
    languages = ["--source-language", "ar", "--target-language", "en"]
    folder = tmp_path_factory.mktemp("models") / "ar-en" / "1"
    return got(FOLDER / NAMES[0], folder, "--precisions", "fp32", *languages)


def stepper_of(bundle: Bundle) -> OnnxStepper:
    return OnnxStepper.between(bundle.source_tokenizer, bundle.target_tokenizer, bundle.path / "fp32")


def runs(answers: Answers, name: str, beam_size: int) -> list[dict[str, Any]]:
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


def decode(subject: Subject, stepper: Any, sources: list[str], beam_size: int) -> Any:
    decoding = replace(subject.decoding, beam_size=beam_size, length_penalty=1.0)
    return search.beam_search(stepper, subject.source_tokenizer.encode_ids(sources), decoding)


@pytest.mark.parametrize("beam_size", [1, 4])
@trained
def test_the_reference_spells_every_name_as_ctranslate2_does(
    answers: Answers, subject: Subject, beam_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By which they rank hypotheses.
    monkeypatch.setattr(search, "length_penalty", lambda num_tokens, alpha: float(num_tokens**alpha))
    expected = runs(answers, name_of(subject), beam_size)
    found = decode(subject, open_reference(subject), [run["source"] for run in expected], beam_size)
    for run, hypotheses in zip(expected, found, strict=True):
        theirs, ours = run["hypotheses"][0], hypotheses[0]
        assert [subject.target_tokenizer.piece(id_) for id_ in ours.tokens] == theirs["tokens"]
        assert ours.score == pytest.approx(theirs["score"], abs=1e-4)


@trained
def test_tokens_have_the_probability_that_ctranslate2_gives_them(answers: Answers, bundle: Bundle) -> None:
    subject = load_arabic(NAMES[0])
    source, target = subject.source_tokenizer, subject.target_tokenizer
    stepper = stepper_of(bundle)
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


@trained
def test_hypotheses_have_the_score_that_ctranslate2_gives_them(answers: Answers, subject: Subject) -> None:
    for run in runs(answers, name_of(subject), beam_size=4):
        for hypothesis in run["hypotheses"]:
            found = spelling(subject, run["source"], hypothesis["text"])
            assert np.mean(found) == pytest.approx(hypothesis["score"], abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
@trained
def test_the_bundle_spells_as_ctranslate2_does(answers: Answers, bundle: Bundle, beam_size: int) -> None:
    subject = load_arabic(NAMES[0])
    expected = runs(answers, NAMES[0], beam_size)
    found = decode(subject, stepper_of(bundle), [run["source"] for run in expected], beam_size)
    for run, hypotheses in zip(expected, found, strict=True):
        text = bundle.target_tokenizer.decode_text(list(hypotheses[0].tokens))
        assert text == run["hypotheses"][0]["text"]
    assert not bundle.manifest.source_end
