"""A model of Marian is the same from Hugging Face and from what CTranslate2's converter makes of that."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.export.ctranslate2_model import binary
from tests.export.marian_checkpoint import SOURCE_TEXT, write_marian

from dragoman_export.from_ctranslate2 import load_ctranslate2
from dragoman_export.from_hf import load_marian


def convert(checkpoint: Path, marian: Any, folder: Path) -> None:
    """What CTranslate2 4.8 writes: without the token that pads, and without that a source ends."""
    folder.mkdir()
    weights = {name: value.numpy() for name, value in marian.state_dict().items()}
    variables: dict[str, np.ndarray] = {
        "decoder/embeddings/weight": weights["model.shared.weight"][:-1],
        "decoder/projection/bias": weights["final_logits_bias"].reshape(-1)[:-1],
        "decoder/position_encodings/encodings": weights["model.decoder.embed_positions.weight"],
        "decoder/start_from_zero_embedding": np.array(1, np.int8),
    }
    aliases = {
        "decoder/projection/weight": "decoder/embeddings/weight",
        "encoder/embeddings_0/weight": "decoder/embeddings/weight",
        "encoder/position_encodings/encodings": "decoder/position_encodings/encodings",
    }
    for side in ("encoder", "decoder"):
        variables |= {
            f"{side}/num_heads": np.array(4, np.int16),
            f"{side}/pre_norm": np.array(0, np.int8),
            f"{side}/activation": np.array(2, np.int8),
            f"{side}/scale_embeddings": np.array(np.sqrt(32), np.float32),
        }
        linears = [
            ("self_attention/linear_0", "self_attn", ["q_proj", "k_proj", "v_proj"]),
            ("self_attention/linear_1", "self_attn", ["out_proj"]),
            ("ffn/linear_0", "", ["fc1"]),
            ("ffn/linear_1", "", ["fc2"]),
        ]
        norms = [("self_attention", "self_attn_layer_norm"), ("ffn", "final_layer_norm")]
        if side == "decoder":
            linears += [
                ("attention/linear_0", "encoder_attn", ["q_proj"]),
                ("attention/linear_1", "encoder_attn", ["k_proj", "v_proj"]),
                ("attention/linear_2", "encoder_attn", ["out_proj"]),
            ]
            norms.append(("attention", "encoder_attn_layer_norm"))
        for layer in range(2):
            theirs, ours = f"model.{side}.layers.{layer}", f"{side}/layer_{layer}"
            for name, part, parts in linears:
                for kind in ("weight", "bias"):
                    found = [weights[".".join(filter(None, [theirs, part, each, kind]))] for each in parts]
                    variables[f"{ours}/{name}/{kind}"] = np.concatenate(found)
            for name, norm in norms:
                variables[f"{ours}/{name}/layer_norm/gamma"] = weights[f"{theirs}.{norm}.weight"]
                variables[f"{ours}/{name}/layer_norm/beta"] = weights[f"{theirs}.{norm}.bias"]
    (folder / "model.bin").write_bytes(binary(6, variables, aliases))
    pieces = json.loads((checkpoint / "vocab.json").read_text())
    (folder / "shared_vocabulary.json").write_text(json.dumps(list(pieces)[:-1]))
    settings = {"decoder_start_token": "</s>", "add_source_eos": False}
    (folder / "config.json").write_text(json.dumps(settings))
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes((checkpoint / f"{side}.spm").read_bytes())


def test_it_is_the_same_model_to_the_bit(tmp_path: Path) -> None:
    marian = write_marian(tmp_path / "hf")
    with torch.no_grad():
        # As it is in Marian's models, whose decoder starts from zeros.
        marian.model.shared.weight[-1] = 0
    marian.save_pretrained(tmp_path / "hf")
    convert(tmp_path / "hf", marian, tmp_path / "ct2")
    one = load_marian(str(tmp_path / "hf"))
    other = load_ctranslate2(tmp_path / "ct2", source_language="de", target_language="en")
    parameters = dict(other.model.named_parameters())
    buffers = dict(other.model.named_buffers())
    for name, expected in one.model.named_parameters():
        found = parameters.pop(name)
        if name == "output.bias":
            # The last begins a translation, and is never produced.
            expected, found = expected[:-1], found[:-1]
        assert torch.equal(found, expected), name
    for name, expected in one.model.named_buffers():
        assert torch.equal(buffers.pop(name), expected), name
    assert not parameters
    assert not buffers
    assert (one.source_end, other.source_end) == (True, True)
    for text in SOURCE_TEXT:
        assert one.source_tokenizer.encode_ids([text]) == other.source_tokenizer.encode_ids([text])
    for special in ("bos_id", "eos_id", "unk_id", "pad_id", "vocabulary_size"):
        for side in ("source_tokenizer", "target_tokenizer"):
            assert getattr(getattr(one, side), special) == getattr(getattr(other, side), special)
    assert one.model.alignment_head == other.model.alignment_head
