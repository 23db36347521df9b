"""A MarianMT checkpoint of OPUS-MT's own size, with random weights: 6+6 layers, width 512, 65,001 pieces."""

import json
from pathlib import Path

import torch
from tests.conftest import toy_pairs
from tests.export.marian_checkpoint import number, pieces_of, train_spm
from transformers import GenerationConfig, MarianConfig, MarianMTModel

VOCABULARY = 65_001
DEVIATION = 0.05
"""Of the weights. Such a model is surer of itself than one that begins to learn, at 0.02."""


def write_real_size(folder: Path) -> None:
    """Writes the files that such a checkpoint has, the same ones each time."""
    pairs = toy_pairs(300, seed=4)
    models = [train_spm([pair[side] for pair in pairs], 120) for side in (0, 1)]
    pieces = sorted({piece for model in models for piece in pieces_of(model)})
    # As many words as it takes, of which the tokenizers know nothing.
    made_up = [f"▁word{place}" for place in range(VOCABULARY - len(pieces) - 3)]
    vocabulary = number([*pieces, *made_up])
    pad = vocabulary["<pad>"]
    assert pad == VOCABULARY - 1
    torch.manual_seed(6)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=512,
        init_std=DEVIATION,
        eos_token_id=0,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        forced_eos_token_id=0,
    )
    model = MarianMTModel(config).eval()
    torch.nn.init.normal_(model.final_logits_bias, std=0.5)
    model.generation_config = GenerationConfig(
        max_length=512,
        num_beams=4,
        bad_words_ids=[[pad]],
        eos_token_id=0,
        forced_eos_token_id=0,
        pad_token_id=pad,
        decoder_start_token_id=pad,
    )
    model.save_pretrained(folder)
    for side, content in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(content)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "de", "target_lang": "en", "separate_vocabs": False})
    )
