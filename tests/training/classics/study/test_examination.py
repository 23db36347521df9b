"""One checkpoint examined."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.toy_pairs import SOURCES, TARGETS, toy_model, toy_tokenizer

from dragoman_training.alignment.head import ChosenHead, look_through
from dragoman_training.checkpoint import load_checkpoint, write_checkpoint
from dragoman_training.classics.study.examination import Findings, examine
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.classics.study.page import attention_section
from dragoman_training.models.transformer import AlignmentHead, Transformer, TransformerConfig
from dragoman_training.recipe.data import DataConfig
from dragoman_training.recipe.settings import DecodingConfig, Recipe, TrainingConfig

CONFIG = TransformerConfig(width=12, heads=3, feed_forward=20, encoder_layers=1, decoder_layers=2)
DATA = DataConfig(
    source_language="de",
    target_language="en",
    train_source=("train.de",),
    train_target=("train.en",),
    valid_source=("val.de",),
    valid_target=("val.en",),
)
SET = StudySet(
    sources=(*SOURCES[:3], ", ".join(SOURCES[:3])),
    references=(*TARGETS[:3], ", ".join(TARGETS[:3])),
    num_sentences=3,
    join=3,
    examples=(0, 2),
)


def write_transformer(
    folder: Path, *, decoding: DecodingConfig | None = None, training: TrainingConfig | None = None
) -> Path:
    """A checkpoint with random weights, beside the corpus that it says it was trained on."""
    torch.manual_seed(2)
    tokenizer = toy_tokenizer()
    model = toy_model(CONFIG, tokenizer)
    for side, lines in (("de", SOURCES), ("en", TARGETS)):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    recipe = Recipe(
        name="toy",
        data=DATA,
        model=CONFIG,
        decoding=decoding or DecodingConfig(),
        training=training or TrainingConfig(),
    )
    tensors = {f"model.{name}": value for name, value in model.named_parameters()}
    path = folder / "best.safetensors"
    write_checkpoint(path, recipe, (tokenizer, tokenizer), tensors, {"validations": []})
    return path


def examined(path: Path, recipe_folder: Path) -> Findings:
    return examine(
        "transformer",
        path,
        SET,
        beam_size=2,
        length_penalty=1,
        recipe_folder=recipe_folder,
        device=torch.device("cpu"),
        report=lambda count: None,
    )


@pytest.mark.parametrize("of_input", [False, True])
def test_a_transformers_alignment_head_is_drawn_of_the_token_it_is_of(
    of_input: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = AlignmentHead(layer=0, head=1)
    chosen = ChosenHead(head=head, of_input=of_input, reason="head 2 of decoder layer 1, because of a test")
    monkeypatch.setattr("dragoman_training.classics.study.examination.choose_head", lambda *_, **__: chosen)
    path = write_transformer(tmp_path)
    found = examined(path, tmp_path)
    model, tokenizer = load_checkpoint(path).model, toy_tokenizer()
    assert isinstance(model, Transformer)
    for number, example in zip(SET.examples, found.examples, strict=True):
        said = [*found.tokens[number], tokenizer.eos_id]
        assert len(said) > 2
        source = [*tokenizer.encode_ids([SET.sources[number]])[0], tokenizer.eos_id]
        (look_LHUT,) = look_through(
            model, [(source, said)], pads=(tokenizer.pad_id,) * 2, bos=tokenizer.bos_id
        )
        # Which a token's weights are: of the step that predicts it, or of the one after, that reads it.
        rows = look_LHUT[head.layer, head.head, int(of_input) :]
        assert np.allclose(example.attention.weights_UT, rows, atol=1e-5)
        pieces = [tokenizer.piece(token) for token in said]
        assert list(example.target_pieces) == (pieces[:-1] if of_input else pieces)
    page = attention_section([found], SET, ["a.png", "b.png"])
    assert "`transformer`: head 2 of decoder layer 1, because of a test." in page
    assert ("the sentence's end, which no step reads, has none" in page) == of_input


def test_long_sentences_are_neither_cut_nor_their_translations(tmp_path: Path) -> None:
    limited, free = tmp_path / "limited", tmp_path / "free"
    for folder in (limited, free):
        folder.mkdir()
    short = DecodingConfig(max_source_tokens=8, max_output_tokens=6)
    found = examined(write_transformer(limited, decoding=short), limited)
    assert found.tokens == examined(write_transformer(free), free).tokens
    assert max(map(len, found.tokens)) > 6
