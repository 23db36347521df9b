"""Models in CTranslate2's format, of every form that it has or had, become the same models of ours."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from dragoman_bundle import open_bundle
from sentencepiece import sentencepiece_model_pb2
from tests.export.ctranslate2_model import TARGET, Form, write_model
from tests.export.foreign.forced import imported, log_probabilities

from dragoman_export.get.cli import get
from dragoman_export.graphs.step_end import searchable_size
from dragoman_export.importers.argos import load_ctranslate2
from dragoman_export.importers.files import FormatError
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
    return load_ctranslate2(folder, source_language="de", target_language="en")


def scale_of(subject: Subject) -> float:
    architecture = imported(subject).architecture
    assert isinstance(architecture, TransformerArchitecture)
    return architecture.embedding_scale


def check(folder: Path, form: Form) -> None:
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
        is_pre_norm, has_learned_positions, is_tied, is_shared = flags
        form = Form(
            version=version,
            numbers=numbers,
            is_pre_norm=is_pre_norm,
            has_learned_positions=has_learned_positions,
            is_tied=is_tied,
            is_shared=is_shared,
        )
        check(tmp_path / str(number), form)


@pytest.mark.parametrize("activation", range(5))
def test_activations_are_those_of_its_numbers(activation: int, tmp_path: Path) -> None:
    check(tmp_path, Form(activation=activation))


@pytest.mark.parametrize("epsilon", [0.3, 1e-6])
def test_what_is_added_to_a_variance_is_what_config_json_says(epsilon: float, tmp_path: Path) -> None:
    check(tmp_path, Form(config={"layer_norm_epsilon": epsilon}))


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_decoder_that_starts_from_zero_has_a_token_more_that_begins(
    is_shared: bool, tmp_path: Path
) -> None:
    form = Form(starts_from_zero=True, is_shared=is_shared, is_pre_norm=False)
    check(tmp_path, form)
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
    start = {"with_target_bos": np.array(0, np.int8)}
    write_model(tmp_path, Form(version=5, more=start))
    subject = load(tmp_path)
    assert subject.target_tokenizer.bos_id == subject.target_tokenizer.eos_id == 2


def test_embeddings_are_multiplied_by_what_the_model_says(tmp_path: Path) -> None:
    flags = {f"{side}/scale_embeddings": np.array(0, np.int8) for side in ("encoder", "decoder")}
    write_model(tmp_path, Form(more=flags))
    subject = load(tmp_path)
    assert scale_of(subject) == 1
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
def test_a_bundle_gives_every_token_the_probability_that_it_had(
    form: Form, precisions: str, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "m", form)
    folder = tmp_path / "models" / "de-en" / "1"
    arguments = [str(tmp_path / "m"), "--out", str(folder), "--precisions", precisions]
    languages = ["--source-language", "de", "--target-language", "en"]
    result = CliRunner().invoke(get, [*arguments, *languages])
    assert result.exit_code == 0, result.output
    bundle = open_bundle(folder)
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
    folder = tmp_path / "many" / "1"
    result = CliRunner().invoke(get, [str(tmp_path), "--out", str(folder), "--precisions", "fp32"])
    assert result.exit_code == 0, result.output
    bundle = open_bundle(folder).between("de", "en")
    assert bundle.target_start == (tokens.index("eng_Latn"),)
    assert bundle.source_tokenizer.encode_ids(["kl"])[0][0] == tokens.index("deu_Latn")
    assert bundle.manifest.target_ids.bos == bundle.manifest.target_ids.eos == 2
