"""Small Transformers with random weights in CTranslate2's format, and what they answer, in plain numpy.

Shapes: T source positions, U target positions, D width, V vocabulary.
"""

import json
import math
import shutil
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.pieces import train_pieces

Array = NDArray[Any]
Arrays = dict[str, Array]
CODES = {"<f4": 0, "|i1": 1, "<i2": 2, "<i4": 3, "<f2": 4, "<u2": 5}
"""What stands for a type of numbers from binary version 4 on; the last for the bits of bfloat16."""
REVISIONS = {2: 2, 3: 3, 4: 4, 5: 5, 6: 7}
"""A revision of the kind of model that was written in each binary version."""
SOURCE = ["<blank>", "<s>", "</s>", *"abcdefghij"]
TARGET = ["<blank>", "<s>", "</s>", *"klmnopqr"]
"""None has an unknown token, which is put behind them as the models of OpenNMT-tf have it."""
ACTIVATIONS: list[Callable[[Array], Array]] = [
    lambda x: np.maximum(x, 0),
    lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    lambda x: x / (1 + np.exp(-x)),
    lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    lambda x: x / (1 + np.exp(-1.702 * x)),
]
"""By CTranslate2's numbers: ReLU, GELU by tanh, Swish, GELU, GELU by the logistic function."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """One of the forms that a model of CTranslate2 may have."""

    version: int = 6
    numbers: str = "float32"
    """float32, float16, bfloat16, int16 or int8."""
    is_pre_norm: bool = True
    has_learned_positions: bool = False
    is_tied: bool = False
    is_shared: bool = False
    activation: int = 0
    starts_from_zero: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    """What config.json says beside the usual."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Variables beside the usual, or None for one that is left out."""


WIDTH, HEADS, UNITS, LAYERS = 8, 2, 12, {"encoder": 2, "decoder": 1}
NUM_POSITIONS = 30


@dataclass(frozen=True, kw_only=True)
class Model:
    """The model as it is stored, in float: what an int8 code stands for, and not what it was rounded from."""

    form: Form
    variables: Arrays
    """By name, an alias under each of its names."""

    def log_probabilities(self, source: list[int], target: list[int], eos: int) -> list[float]:
        """Of each token of a target and of its end."""
        memory_TD = self._stack("encoder", self._embed("encoder", source), None)
        start = [-1] if self.form.starts_from_zero else [1]
        features_UD = self._stack("decoder", self._embed("decoder", [*start, *target]), memory_TD)
        logits_UV = self._linear(features_UD, "decoder/projection")
        scores_UV = logits_UV - np.log(np.exp(logits_UV).sum(axis=1, keepdims=True))
        return [float(row[id_]) for row, id_ in zip(scores_UV, [*target, eos], strict=True)]

    def _embed(self, side: str, ids: list[int]) -> Array:
        name = next(name for name in self.variables if name.startswith(f"{side}/embeddings"))
        rows = []
        for position, id_ in enumerate(ids):
            row = np.zeros(WIDTH) if id_ < 0 else self.variables[name][id_] * math.sqrt(WIDTH)
            rows.append(row + self._position(side, position))
        return np.array(rows)

    def _position(self, side: str, position: int) -> Array:
        if self.form.has_learned_positions:
            return self.variables[f"{side}/position_encodings/encodings"][position]
        half = WIDTH // 2
        angles = [(position + 1) / 10000 ** (place / (half - 1)) for place in range(half)]
        return np.array([*map(math.sin, angles), *map(math.cos, angles)])

    def _stack(self, side: str, x: Array, memory_TD: Array | None) -> Array:
        for layer in range(LAYERS[side]):
            name = f"{side}/layer_{layer}"
            x = self._around(x, f"{name}/self_attention", self._attend_to_itself)
            if memory_TD is not None:
                memory = memory_TD
                x = self._around(x, f"{name}/attention", lambda x, name, m=memory: self._attend(x, name, m))
            x = self._around(x, f"{name}/ffn", self._feed_forward)
        return self._normalise(x, f"{side}/layer_norm") if self.form.is_pre_norm else x

    def _around(self, x: Array, name: str, sublayer: Any) -> Array:
        if self.form.is_pre_norm:
            return np.array(x + sublayer(self._normalise(x, f"{name}/layer_norm"), name))
        return self._normalise(x + sublayer(x, name), f"{name}/layer_norm")

    def _attend_to_itself(self, x: Array, name: str) -> Array:
        query, key, value = np.split(self._linear(x, f"{name}/linear_0"), 3, axis=1)
        is_causal = name.startswith("decoder")
        return self._linear(_attention(query, key, value, is_causal=is_causal), f"{name}/linear_1")

    def _attend(self, x: Array, name: str, memory_TD: Array) -> Array:
        query = self._linear(x, f"{name}/linear_0")
        key, value = np.split(self._linear(memory_TD, f"{name}/linear_1"), 2, axis=1)
        return self._linear(_attention(query, key, value, is_causal=False), f"{name}/linear_2")

    def _feed_forward(self, x: Array, name: str) -> Array:
        hidden = ACTIVATIONS[self.form.activation](self._linear(x, f"{name}/linear_0"))
        return self._linear(hidden, f"{name}/linear_1")

    def _linear(self, x: Array, name: str) -> Array:
        return np.array(x @ self.variables[f"{name}/weight"].T + self.variables[f"{name}/bias"])

    def _normalise(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.square(centred).mean(axis=1, keepdims=True)
        normal = centred / np.sqrt(variance + (self.form.config.get("layer_norm_epsilon") or 1e-5))
        return np.array(normal * self.variables[f"{name}/gamma"] + self.variables[f"{name}/beta"])


def _attention(query: Array, key: Array, value: Array, *, is_causal: bool) -> Array:
    width = WIDTH // HEADS
    result = np.zeros_like(query)
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        for row in range(len(query)):
            seen = row + 1 if is_causal else len(key)
            scores = key[:seen, part] @ query[row, part] / math.sqrt(width)
            weights = np.exp(scores) / np.exp(scores).sum()
            result[row, part] = weights @ value[:seen, part]
    return result


def write_model(folder: Path, form: Form, seed: int = 5) -> Model:
    """Writes a model's files, without anything that cuts text, and returns what they hold."""
    folder.mkdir(parents=True, exist_ok=True)
    stored, aliases, floats = _quantize(form, _random_variables(form, np.random.default_rng(seed)))
    for name, value in form.more.items():
        stored.pop(name, None)
        if value is not None:
            stored[name] = np.asarray(value)
    (folder / "model.bin").write_bytes(binary(form.version, stored, aliases))
    for side, tokens in (("source", SOURCE), ("target", TARGET)):
        if form.is_shared and side == "source":
            continue
        name = "shared" if form.is_shared else side
        if form.version >= 6:
            (folder / f"{name}_vocabulary.json").write_text(json.dumps(tokens))
        else:
            (folder / f"{name}_vocabulary.txt").write_text("".join(f"{token}\n" for token in tokens))
    if form.version >= 6:
        table = {
            "unk_token": "<unk>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "decoder_start_token": "<s>",
            "add_source_bos": False,
            "add_source_eos": False,
            "layer_norm_epsilon": None,
            **form.config,
        }
        (folder / "config.json").write_text(json.dumps(table))
    return Model(form=form, variables=floats)


def binary(version: int, variables: Arrays, aliases: Mapping[str, str], spec: str | None = None) -> bytes:
    """A model.bin."""
    content = struct.pack("<I", version)
    content += _string(spec or ("TransformerBase" if version < 4 else "TransformerSpec"))
    content += struct.pack("<II", REVISIONS.get(version, 1), len(variables))
    for name, array in variables.items():
        content += _string(name) + struct.pack("<B", array.ndim)
        content += b"".join(struct.pack("<I", size) for size in array.shape)
        if version >= 4:
            content += struct.pack("<BI", CODES[array.dtype.str], array.nbytes)
        else:
            content += struct.pack("<BI", array.itemsize, array.size)
        content += array.tobytes()
    if version >= 3:
        content += struct.pack("<I", len(aliases))
        content += b"".join(_string(name) for alias in aliases.items() for name in alias)
    return content


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<H", len(raw) + 1) + raw + b"\0"


def _random_variables(form: Form, generator: np.random.Generator) -> Arrays:
    """All in float, but for settings."""
    source = "encoder/embeddings_0" if form.version >= 5 else "encoder/embeddings"
    pieces = {"source": len(TARGET if form.is_shared else SOURCE) + 1, "target": len(TARGET) + 1}

    def random(*shape: int, deviation: float = 0.5) -> Array:
        return generator.normal(0, deviation, shape).astype(np.float32)

    variables: Arrays = {
        f"{source}/weight": random(pieces["source"], WIDTH),
        "decoder/embeddings/weight": random(pieces["target"], WIDTH),
        "decoder/projection/weight": random(pieces["target"], WIDTH),
        "decoder/projection/bias": random(pieces["target"]),
    }
    if form.is_shared:
        variables[f"{source}/weight"] = variables["decoder/embeddings/weight"]
    if form.is_tied:
        variables["decoder/projection/weight"] = variables["decoder/embeddings/weight"]
    for side, layers in LAYERS.items():
        norms = [f"{side}/layer_norm"] if form.is_pre_norm else []
        for layer in range(layers):
            name = f"{side}/layer_{layer}"
            linears = [
                ("self_attention/linear_0", 3 * WIDTH, WIDTH),
                ("self_attention/linear_1", WIDTH, WIDTH),
                ("ffn/linear_0", UNITS, WIDTH),
                ("ffn/linear_1", WIDTH, UNITS),
            ]
            if side == "decoder":
                linears += [
                    ("attention/linear_0", WIDTH, WIDTH),
                    ("attention/linear_1", 2 * WIDTH, WIDTH),
                    ("attention/linear_2", WIDTH, WIDTH),
                ]
                norms.append(f"{name}/attention/layer_norm")
            norms += [f"{name}/self_attention/layer_norm", f"{name}/ffn/layer_norm"]
            for linear, outputs, inputs in linears:
                variables[f"{name}/{linear}/weight"] = random(outputs, inputs)
                variables[f"{name}/{linear}/bias"] = random(outputs, deviation=0.2)
        for norm in norms:
            variables[f"{norm}/gamma"] = 1 + random(WIDTH, deviation=0.2)
            variables[f"{norm}/beta"] = random(WIDTH, deviation=0.2)
        if form.has_learned_positions:
            variables[f"{side}/position_encodings/encodings"] = random(NUM_POSITIONS, WIDTH)
    return variables | _settings(form)


def _settings(form: Form) -> Arrays:
    """What tells how variables are used; older models tell it once for both sides."""
    settings: Arrays = {}
    for side in ("encoder/", "decoder/") if form.version >= 5 else ("",):
        settings |= {
            f"{side}num_heads": np.array(HEADS, np.int16),
            f"{side}pre_norm": np.array(form.is_pre_norm, np.int8),
            f"{side}activation": np.array(form.activation, np.int8),
        }
    if form.version >= 5:
        settings |= {
            "encoder/scale_embeddings": np.array(1, np.int8),
            "decoder/scale_embeddings": np.array(math.sqrt(WIDTH), np.float32),
            "encoder/embeddings_merge": np.array(0, np.int8),
            "decoder/alignment_layer": np.array(-1, np.int16),
            "decoder/alignment_heads": np.array(1, np.int16),
            "decoder/alibi": np.array(0, np.int8),
            "decoder/start_from_zero_embedding": np.array(form.starts_from_zero, np.int8),
        }
    if form.version >= 6:
        settings["encoder/multi_query_attention"] = np.array(0, np.int8)
    return settings


def _quantize(form: Form, variables: Arrays) -> tuple[Arrays, dict[str, str], Arrays]:
    """Variables as they are stored, aliases, and what both stand for."""
    stored: Arrays = {}
    aliases: dict[str, str] = {}
    floats: Arrays = {}
    for name, array in sorted(variables.items()):
        floats[name] = array
        same = next((other for other in stored if variables.get(other) is array), None)
        if same and form.version >= 3:
            aliases[name] = same
            floats[name] = floats[same]
        elif form.numbers == "bfloat16" and array.ndim > 0:
            bits = array.view(np.uint32) >> 16
            stored[name] = bits.astype(np.uint16)
            floats[name] = (bits << 16).view(np.float32)
        elif array.ndim == 0 or not name.endswith("weight") or form.numbers in ("float32", "float16"):
            is_half = form.numbers == "float16" and array.ndim > 0
            stored[name] = array.astype(np.float16) if is_half else array
            floats[name] = stored[name].astype(np.float32)
        else:
            scale, code = _codes(form, array)
            stored |= {name: code, f"{name}_scale": scale}
            floats[name] = code / (scale[:, None] if scale.ndim else scale)
    return stored, aliases, {name: np.asarray(array, np.float64) for name, array in floats.items()}


def _codes(form: Form, array: Array) -> tuple[Array, Array]:
    if form.numbers == "int8":
        scale = 127 / np.abs(array).max(axis=1)
        return scale, np.rint(array * scale[:, None]).astype(np.int8)
    scale = np.array(1024 / np.abs(array).max(), np.float32)
    return scale, np.rint(array * scale).astype(np.int16)


ARGOS_METADATA = {
    "package_version": "1.3",
    "argos_version": "1.9",
    "from_code": "de",
    "from_name": "German",
    "to_code": "en",
    "to_name": "English",
}


def write_package(folder: Path) -> Path:
    """What is in a package of Argos Translate."""
    write_model(folder / "model", Form(version=6, numbers="int8", is_tied=True))
    (folder / "sentencepiece.model").write_bytes(train_pieces(["abcdefghij klmnopqr"] * 8, 22))
    (folder / "metadata.json").write_text(json.dumps(ARGOS_METADATA))
    (folder / "README.md").write_text("# German - English\n\nLicense: CC0\n")
    (folder / "stanza").mkdir()
    (folder / "stanza" / "resources.json").write_text("{}")
    return folder


def pack(folder: Path, path: Path) -> Path:
    """An .argosmodel of the folder."""
    made = shutil.make_archive(str(path.with_suffix("")), "zip", folder.parent, folder.name)
    return Path(made).rename(path)
