"""Models of Marian's with random weights, in the form that each system reads, and a vocabulary of words.

Every word is a piece, so that words are counted whoever decodes; the end has a bias that it never comes.
Marian reads the `.npz`, CTranslate2 what its converter makes of it, Mozilla's engine the `.bin` with SSRU,
and ours what `dragoman get` makes of one of these. CTranslate2 knows no SSRU: it has self-attention there.
"""

import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from dragoman_bundle import Bundle, open_bundle
from numpy.typing import NDArray
from sentencepiece import sentencepiece_model_pb2

from benchmarks.measuring import say
from benchmarks.peers import run_command
from dragoman_export.shortlist.lexicon import MAGIC, checksum

spm: Any = sentencepiece_model_pb2  # Made by protobuf as it is imported: nothing tells its types.

Arrays = dict[str, NDArray[np.float32]]

NEVER = -1e4
LARGEST_INPUT = 8.0
"""What rows are rounded by in 8 bits, as if samples had shown it."""
NUM_COMMON, NUM_TARGETS = 100, 50
"""Pieces of a shortlist that every sentence may use, and target pieces of each source piece beside itself."""
_DRAWS = 4 * NUM_TARGETS
"""Enough that nearly always so many of them differ."""
_FLOAT32, _INT8, _INTGEMM8 = 0x0404, 0x0101, 0x4101
_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A Transformer of Marian's."""

    encoder_layers: int = 6
    decoder_layers: int = 6
    width: int = 512
    feed_forward: int = 2048
    heads: int = 8
    vocabulary: int = 32_000
    activation: str = "swish"
    is_ssru: bool = False
    """Whether its decoder has SSRUs (Kim et al. 2019) in the place of self-attention, as Firefox's models."""
    shortlist: bool = False
    """Whether all decode with the same random shortlist."""
    growth: int = 1
    """Words that come out for each that goes in; Mozilla's engine has a little more than 2."""


_SMALL = Shape(decoder_layers=2, width=256, feed_forward=1536, vocabulary=16_000)
SHAPES = {
    "small": _SMALL,
    "small-shortlist": replace(_SMALL, shortlist=True),
    "base": Shape(),
    "opus": Shape(vocabulary=65_001),
    "tiny11": replace(_SMALL, vocabulary=32_000, activation="relu", is_ssru=True, shortlist=True, growth=2),
}
"""The models by name: "opus" has OPUS-MT's own sizes, and "tiny11" those of Firefox's models."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A shape's models in a folder."""

    folder: Path
    shape: Shape
    bundle: Bundle

    def task(self) -> dict[str, Any]:
        """What a peer is told of them."""
        return {"folder": str(self.folder), "shortlist": self.shape.shortlist, "growth": self.shape.growth}


def word(number: int) -> str:
    """The word that is a piece of the vocabulary."""
    return f"x{number:x}y"


def prepare(folder: Path, shape: Shape, python: Path) -> Prepared:
    """Makes the models that are missing; `python` is that of the peers. Raises MeasurementError."""
    bundle = folder / "bundles" / folder.name / "1"
    if not bundle.is_dir():
        say(f"{folder.name}: making the models")
        write_files(folder, shape)
        converter, model = python.with_name("ct2-marian-converter"), folder / "transformer.npz"
        vocabularies = [folder / "vocab.yml"] * 2
        options: list[object] = ["--vocab_paths", *vocabularies, "--output_dir", folder / "ctranslate2"]
        if shape.shortlist:
            options += ["--vocab_mapping", folder / "vmap.txt"]
        run_command(converter, "--model_path", model, *options, "--force")
        model = folder / ("model.bin" if shape.is_ssru else "transformer.npz")
        options = ["--source-language", "de", "--target-language", "en", "--threads", 1, "--out", bundle]
        if shape.shortlist:
            options += ["--shortlist-lexicon", folder / "lex.bin"]
        run_command(sys.executable, "-m", "dragoman", "get", model, *options)
    return Prepared(folder=folder, shape=shape, bundle=open_bundle(bundle))


def write_files(folder: Path, shape: Shape) -> None:
    """Writes what Marian and Mozilla's engine read, and what is converted for CTranslate2 and for ours."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_archive(folder / "transformer.npz", replace(shape, is_ssru=False))
    if shape.is_ssru:
        _write_binary(folder / "model.bin", *_write_archive(folder / "model.npz", shape))
    words = [word(number) for number in range(2, shape.vocabulary)]
    pieces = ["</s>", "<unk>", *(f"▁{each}" for each in words)]
    (folder / "vocab.yml").write_text("".join(f'"{piece}": {id_}\n' for id_, piece in enumerate(pieces)))
    model = spm.ModelProto()
    model.trainer_spec.model_type = spm.TrainerSpec.UNIGRAM
    model.trainer_spec.unk_id, model.trainer_spec.eos_id = 1, 0
    model.trainer_spec.bos_id = model.trainer_spec.pad_id = -1
    model.normalizer_spec.name = "identity"
    kinds = {0: spm.ModelProto.SentencePiece.CONTROL, 1: spm.ModelProto.SentencePiece.UNKNOWN}
    for id_, piece in enumerate(pieces):
        kind = kinds.get(id_, spm.ModelProto.SentencePiece.NORMAL)
        model.pieces.add(piece=piece, score=-1.0 if id_ > 1 else 0.0, type=kind)
    (folder / "vocab.spm").write_bytes(model.SerializeToString())
    if shape.shortlist:
        _write_shortlist(folder, pieces)


def _write_archive(path: Path, shape: Shape) -> tuple[Arrays, bytes]:
    """Writes the `.npz`; its arrays, and its settings as they stand in it."""
    arrays, settings = _arrays(shape), yaml.safe_dump(_settings(shape)).encode() + b"\0"
    stored: dict[str, Any] = {**arrays, "special:model.yml": np.frombuffer(settings, np.int8)}
    np.savez(path, **stored)
    return arrays, settings


def _write_shortlist(folder: Path, pieces: Sequence[str]) -> None:
    """Writes the same shortlist as Marian's binary file and as CTranslate2's vmap.

    Targets are drawn with a chance of one over their rank: sentences share many, as in a language.
    """
    ids = np.arange(2, len(pieces))
    chances = 1 / np.arange(1, len(ids) + 1)
    drawn = np.random.default_rng(1).choice(ids, size=(len(ids), _DRAWS), p=chances / chances.sum())
    rows = [[0], [1]]
    rows += [
        list(dict.fromkeys([own, *row]))[: NUM_TARGETS + 1]
        for own, row in zip(ids.tolist(), drawn.tolist(), strict=True)
    ]
    lines = ["\t" + " ".join(pieces[:NUM_COMMON])]
    lines += [f"{pieces[id_]}\t{' '.join(pieces[target] for target in rows[id_])}" for id_ in ids.tolist()]
    (folder / "vmap.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    # Entries in pairs: the checksum is of whole numbers of 64 bits.
    entries = np.array([target for row in rows for target in sorted(row)], "<u4")
    offsets = np.cumsum([0, *map(len, rows)], dtype="<u8")
    body = struct.pack("<4Q", NUM_COMMON, NUM_TARGETS + 1, len(offsets), len(entries))
    body += offsets.tobytes() + entries.tobytes()
    (folder / "lex.bin").write_bytes(struct.pack("<2Q", MAGIC, checksum(body)) + body)


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
            if side == "decoder" and shape.is_ssru:
                matrix(f"{layer}_rnn_W", width, width)
                matrix(f"{layer}_rnn_Wf", width, width)
                vector(f"{layer}_rnn_bf", width)
                norm(f"{layer}_rnn_ffn")
            else:
                attention(f"{layer}_self")
            if side == "decoder":
                attention(f"{layer}_context")
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
        "transformer-decoder-autoreg": "rnn" if shape.is_ssru else "self-attention",
        "transformer-ffn-activation": shape.activation,
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-no-projection": False,
        "transformer-guided-alignment-layer": "last",
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
