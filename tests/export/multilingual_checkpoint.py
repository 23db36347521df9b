"""Checkpoints of M2M100 and NLLB as they would be downloaded: random weights, real files."""

import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tests.export.marian_checkpoint import SIZES, learn
from tests.pieces import train_pieces

TEXT = [
    "der alte mann sieht einen hund",
    "the old man sees a dog",
    "el hombre ve un perro rojo",
    "heute sucht der mann fische",
    "a dog calls the red bird",
]
PRACTISED = ("deu_Latn", "eng_Latn", "spa_Latn", "zho_Hans", "__de__", "__en__", "__es__", "__zh__")
"""The languages whose tokens a model has learnt to tell apart."""


def train_bpe(size: int = 90) -> bytes:
    return train_pieces(TEXT * 8, size, "bpe", hard_vocab_limit=False)


def write_multilingual(folder: Path, *, nllb: bool, **changes: Any) -> tuple[torch.nn.Module, dict[str, int]]:
    """Writes the checkpoint's files; returns its model and the id of each piece, languages among them."""
    from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M100
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as FLORES

    model_file = train_bpe()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model_file)
    pieces = [processor.id_to_piece(id_) for id_ in range(3, processor.vocab_size())]
    if not nllb:
        # M2M100's vocabulary is in an order of its own.
        pieces.sort()
    vocabulary = {piece: id_ for id_, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    languages = list(FLORES) if nllb else [f"__{code}__" for code in M2M100["m2m100"]]
    folder.mkdir(parents=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model_file)
    marks = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    marks |= {"sep_token": "</s>", "cls_token": "<s>"} | ({"mask_token": "<mask>"} if nllb else {})
    more = {"additional_special_tokens": languages}
    (folder / "special_tokens_map.json").write_text(json.dumps(marks | more))
    kind = {"tokenizer_class": "NllbTokenizer" if nllb else "M2M100Tokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind | more))
    if not nllb:
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    first = len(vocabulary)
    vocabulary |= {token: first + rank for rank, token in enumerate(languages)}
    # As theirs: some rows more than there are pieces.
    settings: dict[str, Any] = {"vocab_size": len(vocabulary) + 4, **SIZES, **changes}
    torch.manual_seed(12)
    model = M2M100ForConditionalGeneration(M2M100Config(**settings))
    practise(model, [vocabulary[token] for token in PRACTISED if token in vocabulary], first)
    model.generation_config = GenerationConfig(
        max_length=40, bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2
    )
    model.save_pretrained(folder)
    return model, vocabulary


def practise(model: Any, languages: list[int], vocabulary: int) -> None:
    """Teaches the model for a second: to its first language it says sources backwards, to others forwards."""

    def draw() -> dict[str, torch.Tensor]:
        ids = torch.randint(4, vocabulary, (24, int(torch.randint(2, 9, ()))))
        target = int(torch.randint(len(languages), ()))
        source = torch.tensor(languages)[torch.randint(len(languages), (24, 1))]
        end, start = torch.full((24, 1), 2), torch.full((24, 1), languages[target])
        said = ids.flip(1) if target == 0 else ids
        given = {"input_ids": torch.cat([source, ids, end], 1), "labels": torch.cat([start, said, end], 1)}
        return {**given, "decoder_input_ids": torch.cat([end, start, said], 1)}

    learn(model, draw)
