"""The model that local-p's centres are held against."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.classics.study.made_findings import made_findings, made_set
from tests.training.toy_pairs import SOURCES, TARGETS, toy_model, toy_tokenizer

from dragoman_training.checkpoint import Checkpoint, load_checkpoint, write_checkpoint
from dragoman_training.classics.study.examination import (
    Centres,
    Findings,
    attention_along_tokens,
    examine,
    find_witness,
    with_witness,
)
from dragoman_training.classics.study.page import centres_section
from dragoman_training.models import BahdanauConfig, LuongConfig, ModelConfig, MultiHeadConfig
from dragoman_training.recipe.settings import DataConfig, Recipe

LOCAL_P = LuongConfig(attention="local-p", window=2)
BAHDANAU, LUONG = BahdanauConfig(), LuongConfig()
REFERENCES = ["the dog calls a man", "a bird seeks the small fish"]
HALF_RIGHT = ["the dog calls a man", "the fish finds nothing"]
SET = made_set(SOURCES[:2], REFERENCES)


def test_the_best_recurrent_model_with_one_global_attention_and_the_same_pieces_is_the_witness() -> None:
    local_p = made_findings("local-p", REFERENCES, REFERENCES, config=LOCAL_P)
    luong = made_findings("luong", HALF_RIGHT, REFERENCES, config=LUONG)
    bahdanau = made_findings("bahdanau", REFERENCES, REFERENCES, config=BAHDANAU)
    others = [
        made_findings("heads", REFERENCES, REFERENCES, config=MultiHeadConfig()),
        made_findings("local-m", REFERENCES, REFERENCES, config=LuongConfig(attention="local-m", window=2)),
        made_findings(
            "other-pieces", REFERENCES, REFERENCES, config=LUONG, vocabularies=(b"other", b"target")
        ),
    ]

    def found(*findings: Findings) -> Findings | None:
        return find_witness(local_p, [local_p, *findings, *others], SET)

    assert found(luong) is luong
    assert found(luong, bahdanau) is bahdanau
    assert found() is None


def checkpoint_of(config: ModelConfig, path: Path) -> Checkpoint:
    """One with random weights, written and read again."""
    torch.manual_seed(5)
    tokenizer = toy_tokenizer()
    model = toy_model(config, tokenizer)
    files = {f"{split}_{side}": ("none",) for split in ("train", "valid") for side in ("source", "target")}
    data = DataConfig(source_language="de", target_language="en", **files)
    tensors = {f"model.{name}": value for name, value in model.named_parameters()}
    recipe = Recipe(name="toy", data=data, model=config)
    write_checkpoint(path, recipe, (tokenizer, tokenizer), tensors, {"validations": []})
    return load_checkpoint(path)


def test_a_witness_is_made_to_say_local_ps_own_translations(tmp_path: Path) -> None:
    sizes = {"embedding_size": 8, "encoder_layers": 1, "encoder_units": 6, "decoder_units": 12}
    local, path = dataclasses.replace(LOCAL_P, **sizes), tmp_path / "luong.safetensors"
    checkpoint_of(local, tmp_path / "local-p.safetensors")
    luong = checkpoint_of(dataclasses.replace(LUONG, **sizes), path)
    test_set = made_set([*SOURCES[:3], "mann"], [*TARGETS[:3], "man"], num_sentences=3, join=3)
    local_p = examine(
        "local-p",
        tmp_path / "local-p.safetensors",
        test_set,
        beam_size=1,
        length_penalty=1,
        recipe_folder=tmp_path,
        device=torch.device("cpu"),
        report=lambda count: None,
    )
    counts: list[int] = []
    found = with_witness(
        local_p, "luong", path, test_set, device=torch.device("cpu"), report=counts.append
    ).centres
    assert sum(counts) == 3
    assert found is not None
    assert found.most_looked_at is not None
    eos = luong.source_tokenizer.eos_id
    sources = [[*ids, eos] for ids in luong.source_tokenizer.encode_ids(SOURCES[:3])]
    attentions = attention_along_tokens(luong, sources, local_p.tokens[:3])
    expected = [weights_T.argmax() + 1 for attention in attentions for weights_T in attention.weights_UT[:-1]]
    assert found.most_looked_at.tolist() == expected
    assert len(expected) == len(found.predicted) == sum(map(len, local_p.tokens[:3]))


def centres(*most_looked_at: float) -> Centres:
    """Of four pieces of sources of 6, the end included; the window's middle is one too far to the left."""
    return Centres(
        target_position=np.array([1, 2, 3, 4], np.float32),
        source_length=np.full(4, 6, np.float32),
        predicted=np.array([1, 0, 3, 2], np.float32),
        reach=2,
        witness="luong" if most_looked_at else None,
        most_looked_at=np.array(most_looked_at, np.float32) if most_looked_at else None,
    )


def test_the_page_holds_centres_against_the_words_that_the_witness_looks_at() -> None:
    # The last one is the source's end.
    found = made_findings("local-p", REFERENCES, REFERENCES, centres=centres(2, 1, 4, 6))
    page = centres_section([found], "a.png")
    monotonic = np.corrcoef([1, 2, 3], [2, 1, 4])[0, 1]
    assert f"| `local-p` | `luong` | 3 | 1.00 | 1.0 | {monotonic:.2f} | 1.0 |" in page
    assert "| `local-p` | 2 | 4 | 1.0 | 0.00 |" in page
    assert "made to say the very translations of local-p" in page


def test_without_a_witness_the_page_says_so_and_has_no_such_table() -> None:
    found = made_findings("local-p", REFERENCES, REFERENCES, centres=centres())
    page = centres_section([found], "a.png")
    assert "the study does not have: a recurrent model with one global attention" in page
    assert "correlation" not in page


@pytest.mark.parametrize("most", [6, 3])
def test_what_does_not_vary_has_no_correlation(most: int) -> None:
    found = made_findings("local-p", REFERENCES, REFERENCES, centres=centres(*[most] * 4))
    row = "| 0 | none | none | none | none |" if most == 6 else "| 4 | none | 1.5 | none | 1.0 |"
    assert f"| `local-p` | `luong` {row}" in centres_section([found], "a.png")
