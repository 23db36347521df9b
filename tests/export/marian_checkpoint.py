"""A MarianMT checkpoint as it would be downloaded: random weights, real files."""

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tests.pieces import train_pieces

SOURCE_TEXT = ["der alte mann sieht einen hund", "ein hund ruft den roten vogel"]
SOURCE_TEXT += ["heute sucht der mann fische"]
TARGET_TEXT = ["the old man sees a dog", "a dog calls the red bird", "today the man looks for fish"]


SIZES: Mapping[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "init_std": 0.1,
}


def train_spm(lines: list[str], size: int) -> bytes:
    return train_pieces(lines * 8, size, "unigram", hard_vocab_limit=False)


def pieces_of(model: bytes) -> list[str]:
    """All of a model's pieces but those that stand for no text."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id_) for id_ in range(3, processor.vocab_size())]


@cache
def make_marian(*, separate: bool = False, **changes: Any) -> tuple[Any, list[bytes], list[dict[str, int]]]:
    """A model, its models of pieces and its vocabularies; made once, and nobody changes them."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    source, target = train_spm(SOURCE_TEXT, 40), train_spm(TARGET_TEXT, 42)
    if separate:
        vocabularies = [number([*pieces_of(source), ">>fra<<"]), number(pieces_of(target))]
    else:
        # One vocabulary for both sides, in an order that is neither model's.
        vocabularies = [number(sorted({*pieces_of(source), *pieces_of(target), ">>fra<<"}))] * 2
    pad = vocabularies[1]["<pad>"]
    settings: Mapping[str, Any] = {
        "vocab_size": len(vocabularies[0]),
        "decoder_vocab_size": len(vocabularies[1]),
        "share_encoder_decoder_embeddings": not separate,
        **SIZES,
        "activation_function": "swish",
        "scale_embedding": True,
        "eos_token_id": 0,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        **changes,
    }
    torch.manual_seed(11)
    model = MarianMTModel(MarianConfig(**settings))
    torch.nn.init.normal_(model.final_logits_bias, std=0.3)
    practise(model)
    ids = {"bad_words_ids": [[pad]], "pad_token_id": pad, "decoder_start_token_id": pad}
    ids |= dict.fromkeys(("eos_token_id", "forced_eos_token_id"), 0)
    model.generation_config = GenerationConfig(max_length=48, num_beams=4, **ids)
    return model, [source, target], vocabularies


def write_marian(folder: Path, *, separate: bool = False, **changes: Any) -> torch.nn.Module:
    """Writes the checkpoint's files and returns its model."""
    model, pieces, vocabularies = make_marian(separate=separate, **changes)
    model.save_pretrained(folder)
    for side, content in zip(("source", "target"), pieces, strict=True):
        (folder / f"{side}.spm").write_bytes(content)
    for file, vocabulary in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=True):
        if separate or file == "vocab.json":
            (folder / file).write_text(json.dumps(vocabulary))
    config = {"source_lang": "de", "target_lang": "en", "separate_vocabs": separate}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "README.md").write_text("---\nlanguage:\n- de\nlicense: cc-by-4.0\n---\n")
    return model


def changed(checkpoint: Path, tmp_path: Path, file: str, changes: dict[str, Any]) -> Path:
    """A copy of the checkpoint with other values in one of its files."""
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | changes))
    return folder


def their_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint, as transformers has it."""
    from transformers import MarianTokenizer

    with warnings.catch_warnings():
        # A package that would normalise punctuation is recommended, and not used for this.
        warnings.simplefilter("ignore")
        return MarianTokenizer.from_pretrained(folder)


def practise(model: Any) -> None:
    """Teaches the model for a second to say sources backwards: at random it would say one word for ever."""
    vocabulary = min(model.config.vocab_size, model.config.decoder_vocab_size) - 1

    def draw() -> dict[str, torch.Tensor]:
        ids = torch.randint(2, vocabulary, (24, int(torch.randint(2, 9, ()))))
        end = torch.zeros(24, 1, dtype=torch.int64)
        return {"input_ids": torch.cat([ids, end], 1), "labels": torch.cat([ids.flip(1), end], 1)}

    learn(model, draw)


def learn(model: Any, draw: Callable[[], dict[str, torch.Tensor]]) -> None:
    """Trains the model on what is drawn, for a second."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(160):
        optimizer.zero_grad()
        model(**draw()).loss.backward()
        optimizer.step()
    model.eval()


def number(pieces: list[str]) -> dict[str, int]:
    """Ids as Marian gives them: the end first, what pads last."""
    return {piece: id_ for id_, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
