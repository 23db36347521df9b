"""What is no model of CTranslate2, is broken, or is no Transformer of ours, is refused by what was found."""

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.export.commands import refusal
from tests.export.ctranslate2_model import SOURCE, TARGET, WIDTH, Form, binary, write_model
from tests.export.marian_checkpoint import train_spm

from dragoman_export.importers.ctranslate2 import load_ctranslate2
from dragoman_export.importers.ctranslate2_variables import read_binary
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.reading import Reading
from dragoman_export.model import Subject

FLAG = np.array(1, np.int8)
NORM = np.ones(WIDTH, np.float32)


def load(folder: Path, tokenizer: Path | None = None) -> Subject:
    given = Reading(source_language="de", target_language="en", source_tokenizer=tokenizer)
    return load_ctranslate2(folder, given)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", Form())
    return tmp_path / "model"


@pytest.mark.parametrize("version", [2, 6])
def test_a_file_that_is_cut_off_anywhere_is_refused(version: int, tmp_path: Path) -> None:
    write_model(tmp_path, Form(version=version, numbers="int8"))
    path = tmp_path / "model.bin"
    whole = path.read_bytes()
    for length in [*range(200), *range(200, len(whole), 101), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"is empty|is cut off or damaged"):
            read_binary(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(FormatError, match="1 bytes follow what it says it holds"):
        read_binary(path)


@pytest.mark.parametrize("version", [2, 6])
def test_a_file_with_bytes_that_changed_is_a_model_or_refused(version: int, tmp_path: Path) -> None:
    write_model(tmp_path, Form(version=version, numbers="int16", is_tied=True))
    path = tmp_path / "model.bin"
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    generator = np.random.default_rng(version)
    refused = 0
    for _ in range(200):
        damaged = whole.copy()
        places = generator.integers(0, len(damaged), 12)
        damaged[places] = generator.integers(0, 256, 12)
        path.write_bytes(damaged.tobytes())
        try:
            load(tmp_path)
        except FormatError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("version", [3, 6])
def test_no_memory_is_taken_because_a_header_says_so(version: int, tmp_path: Path) -> None:
    head = struct.pack("<I", version) + b"\x02\0T\0" + struct.pack("<II", 7, 2**32 - 1) + b"\x02\0w\0"
    size = 2**30 - 1
    kind = struct.pack("<BI", 0, 4 * size) if version >= 4 else struct.pack("<BI", 4, size)
    (tmp_path / "model.bin").write_bytes(head + struct.pack("<BI", 1, size) + kind + b"\0" * 100)
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"the numbers of w should take 4294967292 bytes .* 100 are left"):
        read_binary(tmp_path / "model.bin")
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


def test_a_size_that_is_not_that_of_the_shape_is_refused(tmp_path: Path) -> None:
    content = bytearray(binary(6, {"w": np.zeros((3, 5), np.float32)}, {}))
    place = content.index(struct.pack("<II", 3, 5))
    content[place : place + 8] = struct.pack("<II", 2**31, 2**31)
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(FormatError, match=r"w is \[2147483648, 2147483648\] numbers of 4 bytes, and said"):
        read_binary(tmp_path / "model.bin")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + b"\0" * 40, "has binary version 67324752, and versions 2 to 6"),
        (binary(1, {}, {}), "has binary version 1, and"),
        (binary(7, {}, {}), "has binary version 7, and"),
        (binary(6, {}, {}, spec="WhisperSpec"), "is a model of kind 'WhisperSpec'; what is read is Transf"),
        (binary(6, {}, {}, spec="TransformerDecoderSpec"), "is a model of kind 'TransformerDecoderSpec'"),
        (binary(6, {}, {"a": "b"}), "'a' is said to be 'b', which it lacks"),
        (binary(6, {}, {}), "has no encoder/embeddings/weight, which such a model has"),
        (b"\x06\0\0\0\xff\0", r"the kind of model should take 255 bytes from byte 6 on, and 0 are left"),
        (b"\x06\0\0\0\x02\0\xff\0", "the kind of model is no text"),
    ],
)
def test_other_files_are_refused_by_what_was_found(model: Path, content: bytes, message: str) -> None:
    (model / "model.bin").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        load(model)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"encoder/layer_0/self_attention/relative_position_keys": NORM}, "has relative positions"),
        ({"decoder/layer_0/self_attention/relative_attention_bias": NORM}, "T5's bias of relative positions"),
        ({"decoder/layer_0/self_attention/rotary_dim": FLAG}, "has rotary positions"),
        ({"decoder/alibi": FLAG}, r"positions as biases \(ALiBi\) \(decoder/alibi\)"),
        ({"encoder/multi_query_attention": FLAG}, "multi-query attention"),
        ({"encoder/layer_0/ffn/linear_0_noact/weight": NORM}, "has gated feed-forward layers"),
        ({"encoder/layernorm_embedding/gamma": NORM}, "has normalised embeddings"),
        ({"encoder/embeddings_1/weight": NORM}, "has source features beside the tokens"),
        ({"encoder/layer_0/ffn/layer_norm/beta": None}, r"root mean square \(RMSNorm\)"),
        ({"decoder/activation": np.array(5, np.int8)}, "have the activation 5 of CTranslate2; known are 0 "),
        ({"decoder/activation": FLAG}, "activation is relu in the encoder and gelu-tanh in the decoder"),
        ({"encoder/num_heads": np.array(3, np.int16)}, "encoder has 3 heads, which do not divide 8"),
        ({"encoder/num_heads": np.array(0, np.int16)}, "encoder has 0 heads, which do not divide 8"),
        ({"encoder/num_heads": NORM}, r"num_heads is \[8\], and one number is expected"),
        ({"encoder/layer_0/novelty": NORM}, "novelty, which is none of a Transformer's variables"),
        ({"encoder/layer_0/ffn/linear_0/weight": NORM}, r"linear_0/weight is \[8\], and \['any', 8\] is exp"),
        ({"decoder/projection/bias": NORM * np.nan}, r"projection/bias is \[8\]|holds what is no number"),
        ({"encoder/layer_norm/gamma": NORM * np.inf}, "encoder/layer_norm/gamma holds what is no number"),
        ({"encoder/layer_norm/gamma": None}, "has no encoder/layer_norm/gamma, which such a model has"),
        ({"decoder/alignment_layer": np.array(4, np.int16)}, "those of layer 4; there are 1"),
    ],
)
def test_what_our_transformer_has_not_is_named(more: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_model(tmp_path, Form(more=more))
    with pytest.raises(FormatError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (None, "has no encoder/layer_0/ffn/linear_0/weight_scale, which encoder/layer_0/ffn/linear_0/weight"),
        (np.zeros(12, np.float32), "weight_scale holds what is no scale"),
        (np.ones(5, np.float32), r"weight_scale is \[5\], and .* has 12 rows"),
    ],
)
def test_codes_without_a_sound_scale_are_refused(scale: Any, message: str, tmp_path: Path) -> None:
    write_model(tmp_path, Form(numbers="int8", more={"encoder/layer_0/ffn/linear_0/weight_scale": scale}))
    with pytest.raises(FormatError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"add_source_bos": True}, r"wants '<s>' before every source \(add_source_bos\)"),
        ({"decoder_start_token": None}, "leaves what a translation begins with to its callers"),
        ({"decoder_start_token": "__en__"}, "lacks '__en__', which the model begins or ends with"),
        ({"eos_token": 7}, "eos_token is 7, and must be a token"),
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon is 'small'"),
        ({"quantization_type": 1}, "is quantized as AWQ, which is not read"),
        ({"multi_query_attention": True}, "multi-query attention"),
    ],
)
def test_settings_that_no_search_of_ours_knows_are_refused(
    config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_model(tmp_path, Form(config=config))
    with pytest.raises(FormatError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "has no config.json, which such a model has"),
        ("config.json", "{", "config.json is not JSON"),
        ("config.json", "[" * 100_000, "config.json is not JSON"),
        ("config.json", "[]", "config.json is no JSON object"),
        ("model.bin", None, "model.bin can't be read: No such file"),
        ("source_vocabulary.json", None, "has no source_vocabulary.txt or .json"),
        ("target_vocabulary.json", '{"a": 1}', "is no list of tokens"),
        ("target_vocabulary.json", "\ud800", "is no text in UTF-8"),
        (
            "target_vocabulary.json",
            json.dumps(SOURCE),
            r"target_vocabulary.json is not of this model: it has 14 tokens, and .* 12 target embeddings",
        ),
        (
            "target_vocabulary.json",
            json.dumps([str(number) for number in range(len(TARGET))]),
            "is not of this model: it lacks '<s>', which the model begins or ends with",
        ),
        (
            "source_vocabulary.json",
            json.dumps([*SOURCE[:-1], "▁word"]),
            r"as '▁word': give the one .* as --source-tokenizer FILE",
        ),
        ("bpe.model", "#version: 0.2\n", r"bpe\.model is no sentencepiece model: .* Moses' tokenizer"),
    ],
)
def test_a_file_that_is_missing_or_of_another_kind_is_named(
    model: Path, file: str, content: str | None, message: str
) -> None:
    (model / file).unlink(missing_ok=True)
    if content is not None:
        (model / file).write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(FormatError, match=message):
        load(model)


def test_a_tokenizer_of_another_vocabulary_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "other.spm").write_bytes(train_spm(["старый человек видит собаку"], 30))
    with pytest.raises(FormatError, match="is the sentencepiece model of another vocabulary than"):
        load(model, tmp_path / "other.spm")
    (tmp_path / "other.spm").write_bytes(b"no model")
    with pytest.raises(FormatError, match=r"other\.spm"):
        load(model, tmp_path / "other.spm")


def test_of_what_is_refused_nothing_is_written(model: Path, tmp_path: Path) -> None:
    for options, message in (
        ([], "does not say its source language; give it with --source-language"),
        (["--source-language", "de"], "does not say its target language; give it with --target-language"),
        (["--language-token", ">>fr<<"], "a model in the form of CTranslate2"),
        (["--shortlist"], "--shortlist needs the corpus of a recipe"),
    ):
        assert message in refusal(model, tmp_path / "o" / "1", *options)
    (model / "model.bin").write_bytes((model / "model.bin").read_bytes()[:-9])
    languages = ["--source-language", "de", "--target-language", "en"]
    assert "is cut off or damaged" in refusal(model, tmp_path / "o" / "1", *languages)
