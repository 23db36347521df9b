"""A model of Marian's with random weights, as `.npz` and as Firefox's `.bin`, and a vocabulary of words.

Every word is a piece, so that words are counted whoever decodes; the end has a bias that it never comes.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

spm: Any = sentencepiece_model_pb2  # Made by protobuf as it is imported: nothing tells its types.

Arrays = dict[str, NDArray[np.float32]]

NEVER = -1e4
LARGEST_INPUT = 8.0
"""What rows are rounded by in 8 bits, as if samples had shown it."""
_FLOAT32, _INT8, _INTGEMM8 = 0x0404, 0x0101, 0x4101
_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A Transformer with SSRU in its decoder (Kim et al. 2019)."""

    encoder_layers: int = 6
    decoder_layers: int = 2
    width: int
    feed_forward: int
    heads: int = 8
    vocabulary: int = 32_000


SHAPES = {"tiny11": Shape(width=256, feed_forward=1536), "base": Shape(width=512, feed_forward=2048)}
"""Those of Firefox's models."""


def word(number: int) -> str:
    """The word that is a piece of the vocabulary."""
    return f"x{number:x}y"


def write_model(folder: Path, shape: Shape) -> None:
    """Writes model.npz, model.bin and vocab.spm."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _arrays(shape)
    settings = yaml.safe_dump(_settings(shape)).encode() + b"\0"
    stored: dict[str, Any] = {**arrays, "special:model.yml": np.frombuffer(settings, np.int8)}
    np.savez(folder / "model.npz", **stored)
    _write_binary(folder / "model.bin", arrays, settings)
    model = spm.ModelProto()
    model.trainer_spec.model_type = spm.TrainerSpec.UNIGRAM
    model.trainer_spec.unk_id, model.trainer_spec.eos_id = 1, 0
    model.trainer_spec.bos_id = model.trainer_spec.pad_id = -1
    model.normalizer_spec.name = "identity"
    model.pieces.add(piece="</s>", type=spm.ModelProto.SentencePiece.CONTROL)
    model.pieces.add(piece="<unk>", type=spm.ModelProto.SentencePiece.UNKNOWN)
    for number in range(2, shape.vocabulary):
        model.pieces.add(piece=f"▁{word(number)}", score=-1.0)
    (folder / "vocab.spm").write_bytes(model.SerializeToString())


def _arrays(shape: Shape) -> Arrays:
    random, width, inner = np.random.default_rng(0), shape.width, shape.feed_forward
    arrays: Arrays = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        arrays[name] = random.normal(0, 0.05, (rows, columns)).astype(np.float32)

    def vector(name: str, size: int, value: float = 0.0) -> None:
        arrays[name] = np.full((1, size), value, np.float32)

    def norm(prefix: str) -> None:
        vector(f"{prefix}_ln_scale", width, 1.0)
        vector(f"{prefix}_ln_bias", width)

    def attention(prefix: str) -> None:
        for letter in "qkvo":
            matrix(f"{prefix}_W{letter}", width, width)
            vector(f"{prefix}_b{letter}", width)
        norm(f"{prefix}_Wo")

    matrix("Wemb", shape.vocabulary, width)
    vector("decoder_ff_logit_out_b", shape.vocabulary)
    arrays["decoder_ff_logit_out_b"][0, 0] = NEVER
    for side, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        for number in range(1, layers + 1):
            layer = f"{side}_l{number}"
            if side == "decoder":
                matrix(f"{layer}_rnn_W", width, width)
                matrix(f"{layer}_rnn_Wf", width, width)
                vector(f"{layer}_rnn_bf", width)
                norm(f"{layer}_rnn_ffn")
            attention(f"{layer}_{'self' if side == 'encoder' else 'context'}")
            matrix(f"{layer}_ffn_W1", width, inner)
            matrix(f"{layer}_ffn_W2", inner, width)
            vector(f"{layer}_ffn_b1", inner)
            vector(f"{layer}_ffn_b2", width)
            norm(f"{layer}_ffn_ffn")
    return arrays


def _settings(shape: Shape) -> Mapping[str, Any]:
    return {
        "type": "transformer",
        "dim-emb": shape.width,
        "dim-vocabs": [shape.vocabulary] * 2,
        "transformer-dim-ffn": shape.feed_forward,
        "transformer-heads": shape.heads,
        "enc-depth": shape.encoder_layers,
        "dec-depth": shape.decoder_layers,
        "dec-cell": "ssru",
        "transformer-decoder-autoreg": "rnn",
        "transformer-ffn-activation": "relu",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "tied-embeddings-all": True,
        "version": "v1.12.0",
    }


def _write_binary(path: Path, arrays: Arrays, settings: bytes) -> None:
    """Matrices of products and the embedding in 8 bits, transposed but for this, each with its multiplier."""
    alpha = np.array([127 / LARGEST_INPUT], np.float32)
    items: list[tuple[str, int, tuple[int, ...], bytes]] = [
        ("special:model.yml", _INT8, (len(settings),), settings)
    ]
    for name, array in arrays.items():
        is_embedding = name == "Wemb"
        if not (is_embedding or name.rpartition("_")[2].startswith("W")):
            items.append((name, _FLOAT32, array.shape, array.tobytes()))
            continue
        multiplier = np.float32(127 / np.abs(array).max())
        codes = np.rint((array if is_embedding else array.T) * multiplier).astype(np.int8)
        items.append((name, _INTGEMM8, array.shape, codes.tobytes() + multiplier.tobytes()))
        product = "none" if is_embedding else name
        items.append((f"{product}_QuantMultA", _FLOAT32, (1,), alpha.tobytes()))
    head = struct.pack("<QQ", 1, len(items))
    padded = [content + bytes(-len(content) % _BLOCK) for *_, content in items]
    for (name, kind, shape, _), content in zip(items, padded, strict=True):
        head += struct.pack("<QQQQ", len(name.encode()) + 1, kind, len(shape), len(content))
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = -(len(head) + 8) % _BLOCK
    path.write_bytes(head + struct.pack("<Q", padding) + bytes(padding) + b"".join(padded))
