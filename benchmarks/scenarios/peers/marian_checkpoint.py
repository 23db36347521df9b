"""Run by the Python of a peer's environment: writes a MarianMT checkpoint of random weights.

Needs torch, transformers and sentencepiece. Its pieces are learnt from a text, and as many are made up as are
missing. The end of a sentence has a bias that it never comes: what is decoded has the length that is asked
for, whoever decodes it. The first argument is JSON: the folder, the text and the sizes.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel

SPECIALS = 2
"""The end, which comes first, and what is unknown; what pads comes last."""
NEVER = -1e4


def learn_pieces(folder: Path, text: str, num_pieces: int) -> dict[str, int]:
    """Writes the tokenizers of both sides, which are the same, and returns the vocabulary."""
    sentencepiece.SentencePieceTrainer.train(
        input=text,
        model_prefix=str(folder / "source"),
        vocab_size=min(num_pieces - SPECIALS, 30_000),
        unk_id=0,
        bos_id=-1,
        eos_id=1,
        pad_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    learnt = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    vocabulary = {"</s>": 0, "<unk>": 1}
    for number in range(learnt.get_piece_size()):
        vocabulary.setdefault(learnt.id_to_piece(number), len(vocabulary))
    while len(vocabulary) < num_pieces - 1:
        vocabulary[f"made-up-{len(vocabulary)}"] = len(vocabulary)
    vocabulary["<pad>"] = len(vocabulary)
    for side in ("source", "target"):
        shutil.copy(folder / "source.model", folder / f"{side}.spm")
    return vocabulary


def make_model(vocabulary: dict[str, int], task: dict[str, Any]) -> MarianMTModel:
    """The model, its weights drawn at random."""
    torch.manual_seed(0)
    pad = vocabulary["<pad>"]
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(vocabulary),
            d_model=task["width"],
            encoder_layers=task["encoder_layers"],
            decoder_layers=task["decoder_layers"],
            encoder_ffn_dim=task["feed_forward"],
            decoder_ffn_dim=task["feed_forward"],
            encoder_attention_heads=task["heads"],
            decoder_attention_heads=task["heads"],
            activation_function="swish",
            scale_embedding=True,
            static_position_embeddings=True,
            max_position_embeddings=512,
            pad_token_id=pad,
            eos_token_id=0,
            forced_eos_token_id=0,
            decoder_start_token_id=pad,
            bad_words_ids=[[pad]],
            num_beams=4,
            max_length=512,
            share_encoder_decoder_embeddings=True,
            tie_word_embeddings=True,
        )
    )
    model.final_logits_bias = torch.randn(1, len(vocabulary)) * 0.5
    model.final_logits_bias[0, 0] = NEVER
    return model.eval()


def main() -> None:
    """Writes all files of the checkpoint."""
    task = json.loads(sys.argv[1])
    folder = Path(task["folder"])
    folder.mkdir(parents=True)
    vocabulary = learn_pieces(folder, task["text"], task["vocabulary"])
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "source_lang": "de",
                "target_lang": "en",
                "separate_vocabs": False,
                "model_max_length": 512,
                "tokenizer_class": "MarianTokenizer",
            }
        )
    )
    make_model(vocabulary, task).save_pretrained(folder)


if __name__ == "__main__":
    main()
