"""Marian's own files, of every form: models answer as Marian and Mozilla's engine do; others are refused.

Forms are made here of the trained ones: a vocabulary in YAML or two, `.bin` in floats, and in 8 bits without
the steps of what is multiplied.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.search import Hypothesis, Stepper, beam_search
from numpy.typing import NDArray
from tests.export.commands import got
from tests.export.foreign.imported import assert_same, imported, open_reference
from tests.export.get.registry_server import binary_shortlist
from tests.pieces import train_pieces

from dragoman_export.assembly import make_graphs
from dragoman_export.bundle_files import write_graphs
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian import load_marian
from dragoman_export.importers.marian_items import read_items
from dragoman_export.importers.reading import Reading
from dragoman_export.model import Subject
from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.reference.imported import StoredWeight
from dragoman_export.shortlist.lexicon import LexiconError, read_binary

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "marian-native"
"""Two models that Marian trained, and what Marian and Mozilla's engine answer."""
EVERY = 8
GREEDY = DecodingDefaults(
    beam_size=1,
    length_penalty=0.0,
    max_source_tokens=512,
    max_output_tokens=512,
    max_output_ratio=3.0,
    max_output_margin=30,
)

trained = pytest.mark.skipif(not FOLDER.is_dir(), reason="the trained models are not here")


def load(path: Path) -> Subject:
    return load_marian(path, Reading(source_language="de", target_language="en"))


def lines_of(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


def sources(subject: Subject, every: int = EVERY) -> list[list[int]]:
    tokenizer = subject.source_tokenizer
    return [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_ids(lines_of("source.de")[::every])]


def greedily(stepper: Stepper, subject: Subject, every: int = EVERY) -> list[tuple[str, Hypothesis]]:
    found = [hypotheses[0] for hypotheses in beam_search(stepper, sources(subject, every), GREEDY)]
    return [(subject.target_tokenizer.decode_text(each.tokens), each) for each in found]


def onnx_stepper(subject: Subject, folder: Path, precision: str) -> OnnxStepper:
    write_graphs(make_graphs(subject.model, [precision])[precision], folder / precision)
    return OnnxStepper.between(subject.source_tokenizer, subject.target_tokenizer, folder / precision)


@trained
@pytest.mark.parametrize("name", ["ssru", "s2s"])
@pytest.mark.parametrize("kind", ["reference", "graphs"])
def test_marian_answers_alike(name: str, kind: str, tmp_path: Path) -> None:
    subject = load(FOLDER / f"{name}.npz")
    stepper = open_reference(subject) if kind == "reference" else onnx_stepper(subject, tmp_path, "fp32")
    expected = [line.split("\t") for line in lines_of(f"{name}.marian-beam1.tsv")[::EVERY]]
    for (text, hypothesis), (score, answer) in zip(greedily(stepper, subject), expected, strict=True):
        assert text == answer
        assert hypothesis.log_probability == pytest.approx(float(score), abs=1e-4)


@trained
def test_firefox_file_keeps_its_codes_and_mozillas_answers(tmp_path: Path) -> None:
    path, folder = FOLDER / "ssru.firefox.bin", tmp_path / "de-en" / "1"
    options = ["--source-language", "de", "--target-language", "en", "--precisions", "int8"]
    bundle = got(path, folder, *options, "--check-text", FOLDER / "source.de")
    subject = load(path)
    assert bundle.manifest.decoding.beam_size == 1
    stepper = OnnxStepper.between(subject.source_tokenizer, subject.target_tokenizer, folder / "int8")
    answers = [text for text, _ in greedily(stepper, subject, every=1)]
    assert sum(one == other for one, other in zip(answers, lines_of("ssru.firefox.txt"), strict=True)) >= 190

    weights = (folder / "int8" / "weights.bin").read_bytes()
    for name, stored in read_items(path).stored.items():
        codes_KN = stored.codes_NK if name == "Wemb" else stored.codes_NK.T
        if name[-2:] not in ("Wq", "Wk", "Wv", "Wf", "_W"):  # These are beside others in one matrix.
            assert np.ascontiguousarray(codes_KN).tobytes() in weights, name


@trained
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_s2s_is_the_same_alone_as_in_company(precision: str, tmp_path: Path) -> None:
    subject = load(FOLDER / "s2s.npz")
    stepper = onnx_stepper(subject, tmp_path, precision)
    some = sources(subject, every=25)
    tolerance = {"fp32": 1e-5, "int8": 1e-3}[precision]
    for source, together in zip(some, beam_search(stepper, some, GREEDY), strict=True):
        (alone,) = beam_search(stepper, [source], GREEDY)[0]
        assert alone.tokens == together[0].tokens
        assert alone.log_probability == pytest.approx(together[0].log_probability, abs=tolerance)


WIDTH, UNITS, PIECES = 8, 12, 16
OPTIONS = {
    "type": "transformer",
    "dim-emb": WIDTH,
    "dim-vocabs": [PIECES, PIECES],
    "enc-depth": 1,
    "dec-depth": 2,
    "transformer-heads": 2,
    "transformer-dim-ffn": UNITS,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
    "transformer-decoder-autoreg": "self-attention",
    "tied-embeddings-all": True,
}
RECURRENT = {"type": "s2s", "dim-rnn": 6, "enc-depth": 2, "dec-depth": 2}
RECURRENT |= dict.fromkeys(("enc-cell", "dec-cell"), "gru")


def toy(path: Path, **changed: object) -> Path:
    """A pre-norm Transformer with random weights, by Marian's names, and its vocabulary."""
    random = np.random.default_rng(1)
    shapes = {"Wemb": (PIECES, WIDTH), "decoder_ff_logit_out_b": (1, PIECES)}
    for side, layers in (("encoder", 1), ("decoder", 2)):
        norms = [f"{side}_top_ln_{{}}"]
        for layer in range(1, layers + 1):
            parts = ["self"] + ["context"] * (side == "decoder")
            for part in parts:
                prefix = f"{side}_l{layer}_{part}"
                shapes |= {f"{prefix}_W{letter}": (WIDTH, WIDTH) for letter in "qkvo"}
                shapes |= {f"{prefix}_b{letter}": (1, WIDTH) for letter in "qkvo"}
                norms.append(f"{prefix}_Wo_ln_{{}}_pre")
            prefix = f"{side}_l{layer}_ffn"
            shapes |= {f"{prefix}_W1": (WIDTH, UNITS), f"{prefix}_b1": (1, UNITS)}
            shapes |= {f"{prefix}_W2": (UNITS, WIDTH), f"{prefix}_b2": (1, WIDTH)}
            norms.append(f"{prefix}_ffn_ln_{{}}_pre")
        shapes |= {norm.format(part): (1, WIDTH) for norm in norms for part in ("scale", "bias")}
    arrays: dict[str, NDArray[np.generic]] = {
        name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()
    }
    settings = yaml.safe_dump({**OPTIONS, **changed}).encode() + b"\0"
    np.savez(path, **arrays, **{"special:model.yml": np.frombuffer(settings, np.int8)})
    return path


@pytest.fixture
def vocabulary(tmp_path: Path) -> None:
    """A file of letters beside the models, numbered as Marian's trainer numbers pieces."""
    ids = {"eos_id": 0, "unk_id": 1, "bos_id": -1, "pad_id": -1}
    (tmp_path / "vocab.spm").write_bytes(train_pieces(["abcdefghijklmn"] * 8, PIECES, **ids))


def test_prenorm_transformer_is_what_its_reference_is(tmp_path: Path, vocabulary: None) -> None:
    folder = tmp_path / "toy" / "1"
    toy(tmp_path / "model.deen.npz")
    manifest = got(tmp_path, folder, "--precisions", "fp32").manifest
    assert (manifest.source_language, manifest.target_language) == ("de", "en")


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("transformer-decoder-autoreg", "average-attention", "known are self-attention, rnn"),
        ("transformer-postprocess", "dahn", "known are 'dan'"),
        ("transformer-postprocess-emb", "nd", "known is 'd'"),
        ("transformer-ffn-activation", "sigmoid", "known are relu, swish, gelu"),
        ("transformer-ffn-depth", 3, "is not supported"),
        ("transformer-tied-layers", [1, 1], "is not supported"),
        ("transformer-train-position-embeddings", True, "is not supported"),
        ("lemma-dim-emb", 4, "is not supported"),
        ("type", "char-s2s", "known are transformer, s2s"),
        ("type", "amun", "known are transformer, s2s"),
        ("type", "nematus", "known are transformer, s2s"),
        ("mixture-of-experts", 4, "is not known"),
        ("transformer-heads", "many", "is no int"),
        ("transformer-heads", 3, "divides"),
    ],
)
def test_unknown_option_is_refused_by_name(
    tmp_path: Path, vocabulary: None, option: str, value: object, says: str
) -> None:
    with pytest.raises(FormatError, match=option) as refused:
        load(toy(tmp_path / "model.npz", **{option: value}))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("option", "value"), [("enc-cell", "lstm"), ("enc-type", "alternating"), ("dec-cell", "mlstm")]
)
def test_unknown_recurrence_is_refused(tmp_path: Path, vocabulary: None, option: str, value: str) -> None:
    with pytest.raises(FormatError, match=f"{option} is '{value}'"):
        load(toy(tmp_path / "model.npz", **{**RECURRENT, option: value}))


def test_parameter_that_nobody_reads_is_refused(tmp_path: Path, vocabulary: None) -> None:
    with pytest.raises(FormatError, match="decoder_l2_context_Wk, which its configuration says nothing of"):
        load(toy(tmp_path / "model.npz", **{"dec-depth": 1}))


@trained
@pytest.mark.parametrize("size", [4, 100, 5_000, -1])
def test_cut_off_file_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes((FOLDER / "ssru.firefox.bin").read_bytes()[:size])
    with pytest.raises(FormatError, match=r"cut off|damaged"):
        read_items(path)


def test_binary_shortlist_is_read_and_its_checksum_verified(tmp_path: Path, vocabulary: None) -> None:
    subject = load(toy(tmp_path / "model.npz"))
    tokenizers = subject.source_tokenizer, subject.target_tokenizer
    path = tmp_path / "lex.50.50.deen.s2t.bin"
    content = binary_shortlist([[5, 9]] * 4 + [[7, 12, 13]] + [[6]] * (PIECES - 5), num_first=5)
    path.write_bytes(content)
    shortlist = read_binary(path, *tokenizers)
    # The first but what is unknown, the end, the token itself, and what the file has for it.
    assert shortlist.candidates([[4]])[0].tolist() == [0, 2, 3, 4, 7, 12, 13]
    assert shortlist.candidates([[8, 0]])[0].tolist() == [0, 2, 3, 4, 5, 6, 8, 9]
    for place in (20, len(content) - 10):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(LexiconError, match="damaged"):
            read_binary(path, *tokenizers)


SOME = 20
FLOAT32, INT8, INTGEMM8 = 0x0404, 0x0101, 0x4101
Arrays = Mapping[str, NDArray[Any] | StoredWeight]


def arrays_of(name: str) -> dict[str, NDArray[Any]]:
    with np.load(FOLDER / name) as archive:
        return {each: archive[each] for each in archive.files}


def pieces() -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / "vocabulary.spm"))
    return [processor.id_to_piece(id_) for id_ in range(processor.vocab_size())]


def write_binary(path: Path, items: Arrays) -> Path:
    """As `marian-conv` lays it out: headers, names, shapes, padding, data."""
    heads, names, shapes, data = b"", b"", b"", b""
    for name, value in items.items():
        if isinstance(value, StoredWeight):
            # By columns, as it is multiplied, but for embeddings.
            kind, (outputs, inputs) = INTGEMM8, value.codes_NK.shape
            shape = (outputs, inputs) if name == "Wemb" else (inputs, outputs)
            content = value.codes_NK.tobytes() + struct.pack("<f", 1 / value.scale_N[0])
        else:
            kind = INT8 if name.startswith("special:") else FLOAT32
            shape, content = value.shape or (1,), value.tobytes()
        content += bytes(-len(content) % 256)
        heads += struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(content))
        names += name.encode() + b"\0"
        shapes += struct.pack(f"<{len(shape)}i", *shape)
        data += content
    start = struct.pack("<QQ", 1, len(items)) + heads + names + shapes
    padding = -(len(start) + 8) % 256
    path.write_bytes(start + struct.pack("<Q", padding) + bytes(padding) + data)
    return path


@trained
@pytest.mark.parametrize("name", ["ssru", "s2s"])
def test_a_binary_of_floats_is_the_archive(name: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.spm").write_bytes((FOLDER / "vocabulary.spm").read_bytes())
    found = imported(load(write_binary(tmp_path / "model.bin", arrays_of(f"{name}.npz"))))
    assert_same(found, imported(load(FOLDER / f"{name}.npz")))
    assert not found.stored


@trained
def test_a_vocabulary_in_yaml_numbers_what_a_sentencepiece_model_cuts(tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes((FOLDER / "ssru.npz").read_bytes())
    numbers = {piece: id_ for id_, piece in enumerate(pieces())}
    (tmp_path / "vocab.yml").write_text(yaml.safe_dump(numbers, allow_unicode=True), encoding="utf-8")
    with pytest.raises(FormatError, match="nothing tells what cuts text into them"):
        load(tmp_path)
    tokenizer = FOLDER / "vocabulary.spm"
    languages = Reading(source_language="de", target_language="en", source_tokenizer=tokenizer)
    given = load_marian(tmp_path, languages)
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes((FOLDER / "vocabulary.spm").read_bytes())
    for subject in (load(tmp_path), given):
        expected = load(FOLDER / "ssru.npz")
        assert sources(subject) == sources(expected)
        answers = subject.target_tokenizer.encode_ids(lines_of("ssru.firefox.txt"))
        assert answers == expected.target_tokenizer.encode_ids(lines_of("ssru.firefox.txt"))
        assert imported(subject).architecture == imported(expected).architecture


@trained
def test_two_vocabularies_are_of_two_embeddings(tmp_path: Path) -> None:
    """The target's pieces are numbered anew, and all that is counted by them: Marian's answers stay."""
    arrays = arrays_of("ssru.npz")
    embedding, bias = arrays.pop("Wemb"), arrays["decoder_ff_logit_out_b"]
    order = np.random.default_rng(3).permutation(len(embedding))
    arrays |= {"encoder_Wemb": embedding, "decoder_Wemb": embedding[order]}
    arrays["decoder_ff_logit_out_b"] = bias[:, order]
    settings = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    settings |= {"tied-embeddings-all": False, "tied-embeddings-src": False, "tied-embeddings": True}
    arrays["special:model.yml"] = np.frombuffer(yaml.safe_dump(settings).encode() + b"\0", np.int8)
    np.savez(tmp_path / "model.npz", **arrays)
    known = pieces()
    for side, ids in (("src", range(len(known))), ("trg", order.tolist())):
        numbers = {known[id_]: number for number, id_ in enumerate(ids) if id_ < len(known)}
        text = yaml.safe_dump(numbers, allow_unicode=True)
        (tmp_path / f"opus.{side}.vocab.yml").write_text(text, encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes((FOLDER / "vocabulary.spm").read_bytes())
    subject = load(tmp_path)
    assert subject.source_tokenizer is not subject.target_tokenizer
    expected = [line.split("\t") for line in lines_of("ssru.marian-beam1.tsv")[::SOME]]
    found = greedily(open_reference(subject), subject, every=SOME)
    for (text, hypothesis), (score, answer) in zip(found, expected, strict=True):
        assert text == answer
        assert hypothesis.log_probability == pytest.approx(float(score), abs=1e-4)


@trained
def test_a_binary_without_steps_is_rounded_row_by_row(tmp_path: Path) -> None:
    whole = read_items(FOLDER / "ssru.firefox.bin")
    configuration = {"special:model.yml": np.frombuffer(whole.configuration + b"\0", np.int8)}
    write_binary(tmp_path / "model.bin", whole.floats | whole.stored | configuration)
    (tmp_path / "vocab.spm").write_bytes((FOLDER / "vocabulary.spm").read_bytes())
    subject = load(tmp_path)
    model, expected = imported(subject), imported(load(FOLDER / "ssru.firefox.bin"))
    assert expected.steps
    assert not model.steps
    assert model.stored.keys() == expected.stored.keys()
    for name, stored in expected.stored.items():
        assert np.array_equal(model.stored[name].codes_NK, stored.codes_NK), name
    answers = [text for text, _ in greedily(onnx_stepper(subject, tmp_path, "int8"), subject, every=4)]
    same = sum(one == other for one, other in zip(answers, lines_of("ssru.firefox.txt")[::4], strict=True))
    # Theirs has one step for all rows; each row has its own here.
    assert same >= 40


def test_an_ensemble_is_refused_by_its_models(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz", "vocab.spm"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "decoder.yml").write_text("models: [one.npz, two.npz]\nvocabs: [vocab.spm, vocab.spm]\n")
    with pytest.raises(FormatError, match=r"an ensemble of one\.npz, two\.npz; one is imported"):
        load(tmp_path)
