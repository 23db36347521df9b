"""Every form that Marian's files have holds the model that Marian answered for.

The samples are made here of the trained ones, whose answers other tests hold against Marian's own: one
vocabulary in YAML or two, `.bin` in floats, and in 8 bits without the steps of what is multiplied.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml
from numpy.typing import NDArray
from tests.export.foreign.test_from_marian import (
    FOLDER,
    greedily,
    imported,
    lines_of,
    load,
    onnx_stepper,
    reference_stepper,
    sources,
    trained,
)

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian import import_marian
from dragoman_export.importers.marian_items import read_items
from dragoman_export.reference.imported import StoredWeight

EVERY = 20
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
    expected = imported(load(FOLDER / f"{name}.npz")).imported
    found = imported(load(write_binary(tmp_path / "model.bin", arrays_of(f"{name}.npz")))).imported
    assert found.architecture == expected.architecture
    assert found.weights.keys() == expected.weights.keys()
    for each, weight in expected.weights.items():
        assert np.array_equal(found.weights[each], weight), each
    assert not found.stored


@trained
def test_a_vocabulary_in_yaml_numbers_what_a_sentencepiece_model_cuts(tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes((FOLDER / "ssru.npz").read_bytes())
    numbers = {piece: id_ for id_, piece in enumerate(pieces())}
    (tmp_path / "vocab.yml").write_text(yaml.safe_dump(numbers, allow_unicode=True), encoding="utf-8")
    with pytest.raises(FormatError, match="nothing tells what cuts text into them"):
        load(tmp_path)
    given = import_marian(
        tmp_path,
        source_language="de",
        target_language="en",
        source_tokenizer=FOLDER / "vocabulary.spm",
    )
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes((FOLDER / "vocabulary.spm").read_bytes())
    for subject in (load(tmp_path), given):
        expected = load(FOLDER / "ssru.npz")
        assert sources(subject) == sources(expected)
        answers = subject.target_tokenizer.encode_ids(lines_of("ssru.firefox.txt"))
        assert answers == expected.target_tokenizer.encode_ids(lines_of("ssru.firefox.txt"))
        assert imported(subject).imported.architecture == imported(expected).imported.architecture


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
    expected = [line.split("\t") for line in lines_of("ssru.marian-beam1.tsv")[::EVERY]]
    found = greedily(reference_stepper(subject), subject, every=EVERY)
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
    model, expected = imported(subject).imported, imported(load(FOLDER / "ssru.firefox.bin")).imported
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
