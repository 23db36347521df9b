"""Marian's own files: their models answer as Marian and Mozilla's engine do; what is not known is refused."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from dragoman_bundle.bundle import open_bundle
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.search import Hypothesis, Stepper, beam_search
from numpy.typing import NDArray
from tests.export.firefox_shortlist import binary_shortlist
from tests.pieces import train_pieces

from dragoman_export.assembly import make_graphs
from dragoman_export.bundle_files import write_graphs
from dragoman_export.get.cli import get
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian import import_marian
from dragoman_export.importers.marian_items import read_items
from dragoman_export.model import ImportedModel, Subject, reference_of
from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.reference.model import Reference, ReferenceStepper
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
    return import_marian(path, source_language="de", target_language="en")


def imported(subject: Subject) -> ImportedModel:
    assert isinstance(subject.model, ImportedModel)
    return subject.model


def lines_of(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


def sources(subject: Subject, every: int = EVERY) -> list[list[int]]:
    tokenizer = subject.source_tokenizer
    return [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_ids(lines_of("source.de")[::every])]


def greedily(stepper: Stepper, subject: Subject, every: int = EVERY) -> list[tuple[str, Hypothesis]]:
    found = [hypotheses[0] for hypotheses in beam_search(stepper, sources(subject, every), GREEDY)]
    return [(subject.target_tokenizer.decode_text(each.tokens), each) for each in found]


def reference_stepper(subject: Subject) -> ReferenceStepper:
    reference = reference_of(imported(subject).imported)
    assert isinstance(reference, Reference)
    return ReferenceStepper(
        reference, source_pad_id=subject.source_tokenizer.pad_id, eos_id=subject.target_tokenizer.eos_id
    )


def onnx_stepper(subject: Subject, folder: Path, precision: str) -> OnnxStepper:
    write_graphs(make_graphs(subject.model, [precision])[precision], folder / precision)
    return OnnxStepper.between(subject.source_tokenizer, subject.target_tokenizer, folder / precision)


@trained
@pytest.mark.parametrize("name", ["ssru", "s2s"])
@pytest.mark.parametrize("kind", ["reference", "graphs"])
def test_marian_answers_alike(name: str, kind: str, tmp_path: Path) -> None:
    subject = load(FOLDER / f"{name}.npz")
    stepper = reference_stepper(subject) if kind == "reference" else onnx_stepper(subject, tmp_path, "fp32")
    expected = [line.split("\t") for line in lines_of(f"{name}.marian-beam1.tsv")[::EVERY]]
    for (text, hypothesis), (score, answer) in zip(greedily(stepper, subject), expected, strict=True):
        assert text == answer
        assert hypothesis.log_probability == pytest.approx(float(score), abs=1e-4)


@trained
def test_firefox_file_keeps_its_codes_and_mozillas_answers(tmp_path: Path) -> None:
    path, folder = FOLDER / "ssru.firefox.bin", tmp_path / "de-en" / "1"
    languages = ["--source-language", "de", "--target-language", "en"]
    arguments = [str(path), *languages, "--precisions", "int8", "--out", str(folder)]
    result = CliRunner().invoke(get, [*arguments, "--check-text", str(FOLDER / "source.de")])
    assert result.exit_code == 0, result.output

    subject, bundle = load(path), open_bundle(folder)
    assert bundle.manifest.decoding.beam_size == 1
    stepper = OnnxStepper.between(subject.source_tokenizer, subject.target_tokenizer, folder / "int8")
    answers = [text for text, _ in greedily(stepper, subject, every=1)]
    same = sum(one == other for one, other in zip(answers, lines_of("ssru.firefox.txt"), strict=True))
    assert same >= 190

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
RECURRENT = {
    "type": "s2s",
    "dim-rnn": 6,
    "enc-depth": 2,
    "dec-depth": 2,
    "enc-cell": "gru",
    "dec-cell": "gru",
}


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
    result = CliRunner().invoke(get, [str(tmp_path), "--precisions", "fp32", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    manifest = open_bundle(folder).manifest
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
def test_unknown_recurrence_is_refused_by_name(
    tmp_path: Path, vocabulary: None, option: str, value: str
) -> None:
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
