"""`dragoman rescore` with small models of the toy corpus, and what users do wrong."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from tests.training.toy_pairs import SOURCES, TARGETS, invoke

from dragoman_training.checkpoint import Checkpoint, load_checkpoint, vocabulary_shape, write_checkpoint
from dragoman_training.classics.rescore_cli import rescore
from dragoman_training.classics.rescoring import (
    FEATURES,
    Listed,
    Members,
    choose,
    log_probabilities,
    tune_weights,
)
from dragoman_training.models import LanguageModelConfig, build_model
from dragoman_training.recipe.data import DataConfig

LINES = SOURCES[:6]


@pytest.fixture(scope="module")
def members(toy_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The toy, and untrained models that say P(f|e) and P(e)."""
    folder = tmp_path_factory.mktemp("members")
    toy = load_checkpoint(toy_checkpoint)
    torch.manual_seed(1)
    data = toy.recipe.data
    reverse = replace(
        data,
        source_language=data.target_language,
        target_language=data.source_language,
        train_source=data.train_target,
        train_target=data.train_source,
        valid_source=data.valid_target,
        valid_target=data.valid_source,
    )
    alone = DataConfig(
        target_language=data.target_language, train_target=data.train_target, valid_target=data.valid_target
    )
    tokenizers = toy.target_tokenizer, toy.source_tokenizer
    write_untrained(folder / "reverse", toy, reverse, toy.recipe.model, tokenizers)
    small = LanguageModelConfig(embedding_size=8, layers=1, units=8, attention_units=4)
    write_untrained(folder / "lm", toy, alone, small, (toy.target_tokenizer,) * 2)
    return {"direct": toy_checkpoint, "reverse": folder / "reverse", "lm": folder / "lm"}


def write_untrained(path: Path, toy: Checkpoint, data: DataConfig, config: object, tokenizers: tuple) -> None:  # type: ignore[type-arg]
    vocabulary = replace(toy.recipe.vocabulary, shared=tokenizers[0] is tokenizers[1])
    training = replace(toy.recipe.training, early_stopping="loss")
    recipe = replace(toy.recipe, data=data, model=config, vocabulary=vocabulary, training=training)
    model = build_model(recipe.model, vocabulary_shape(*tokenizers))
    tensors = {f"model.{name}": value for name, value in model.named_parameters()}
    write_checkpoint(path, recipe, tokenizers, tensors, {})


def load(paths: dict[str, Path]) -> Members:
    return Members.load(paths["direct"], paths["reverse"], paths["lm"], torch.device("cpu"))


def run(paths: dict[str, Path], *arguments: object) -> Result:
    others = "--reverse", paths["reverse"], "--language-model", paths["lm"]
    return invoke(rescore, paths["direct"], *others, *arguments)


def test_a_sentence_is_as_likely_as_the_search_says(members: dict[str, Path]) -> None:
    toy = load_checkpoint(members["direct"])
    tokenizers = toy.source_tokenizer, toy.target_tokenizer
    num_compared = num_all = 0
    for source, own in zip(LINES, load(members).translations(LINES, 4, None), strict=True):
        for one in own:
            said, ids = tokenizers[0].encode_ids([source]), tokenizers[1].encode_ids([one.text])
            num_all += 1
            if len(ids[0]) + 1 == one.features_F[3]:  # The search may write a text in other pieces.
                num_compared += 1
                (found,) = log_probabilities(toy.model, tokenizers, said, ids)
                assert found == pytest.approx(one.features_F[0], abs=1e-3)
    assert num_compared > num_all / 2


def test_of_a_source_that_is_cut_only_what_was_read_is_judged(members: dict[str, Path]) -> None:
    whole = load(members)
    recipe = whole.direct.recipe
    short = replace(recipe, decoding=replace(recipe.decoding, max_source_tokens=6))
    cut = replace(whole, direct=replace(whole.direct, recipe=short))
    tokenizer = whole.direct.source_tokenizer
    ids = tokenizer.encode_ids([LINES[0]])[0]
    read = tokenizer.decode_text(ids[:5])
    # Written as it was read, so that both are the same sentence to all members.
    assert tokenizer.encode_ids([read])[0] == ids[:5] != ids
    with pytest.warns(UserWarning, match="1 of 2 sentences"):
        of_cut, of_read = cut.translations([LINES[0], read], 4, None)
    assert [one.text for one in of_cut] == [one.text for one in of_read]
    for one, other in zip(of_cut, of_read, strict=True):
        assert one.features_F == pytest.approx(other.features_F, abs=1e-3)


def test_sentences_together_are_as_likely_as_alone(members: dict[str, Path]) -> None:
    toy = load_checkpoint(members["reverse"])
    tokenizers = toy.source_tokenizer, toy.target_tokenizer
    sources, targets = tokenizers[0].encode_ids(TARGETS[:6]), tokenizers[1].encode_ids(LINES)
    together = log_probabilities(toy.model, tokenizers, sources, targets)
    for source, target, found in zip(sources, targets, together, strict=True):
        (alone,) = log_probabilities(toy.model, tokenizers, [source], [target])
        assert found == pytest.approx(alone, abs=1e-3)


def test_a_language_model_s_sentence_is_the_sum_of_its_steps(members: dict[str, Path]) -> None:
    checkpoint = load_checkpoint(members["lm"])
    model, tokenizer = checkpoint.model, checkpoint.target_tokenizer
    ids = tokenizer.encode_ids(TARGETS[:3])
    found = log_probabilities(model, (checkpoint.source_tokenizer, tokenizer), [[]] * len(ids), ids)
    for own, log_probability in zip(ids, found, strict=True):
        memory, state = model.encode(torch.tensor([[tokenizer.eos_id]]), torch.tensor([1]))
        total, token = 0.0, tokenizer.bos_id
        for following in [*own, tokenizer.eos_id]:
            features, _, state = model.step(torch.tensor([[token]]), memory, state)
            total += float(model.output(features).log_softmax(dim=-1)[0, following])
            token = following
        assert log_probability == pytest.approx(total, abs=1e-3)


def test_the_weights_follow_the_member_that_knows() -> None:
    """The reverse model alone says which is the reference."""
    random = np.random.default_rng(1)
    references, lists = TARGETS[:6], []
    for number, reference in enumerate(references):
        texts = [*TARGETS[:number], *TARGETS[number + 1 : 6], reference]
        features = random.normal(size=(len(texts), len(FEATURES)))
        features[:, 1], features[:, 2] = [text == reference for text in texts], 0
        lists.append([Listed(text, own) for text, own in zip(texts, features, strict=True)])
    weights_F = tune_weights(lists, references, seed=1)
    assert choose(lists, weights_F) == references
    assert weights_F[1] == max(weights_F)
    assert weights_F[2] == 0


def test_lines_are_chosen_and_the_gain_is_told(tmp_path: Path, members: dict[str, Path]) -> None:
    (tmp_path / "de").write_text("\n".join([*LINES, ""]) + "\n", "utf-8")
    (tmp_path / "en").write_text("\n".join([*TARGETS[:6], ""]) + "\n", "utf-8")
    files = "--source", tmp_path / "de", "--reference", tmp_path / "en", "--num-best", 4
    tuned = run(members, *files, "--valid-source", tmp_path / "de", "--valid-target", tmp_path / "en")
    assert tuned.exit_code == 0, tuned.exception
    lines = tuned.stdout.split("\n")
    assert len(lines) == 8
    assert lines[6] == ""
    assert "rescored" in tuned.stderr
    told = next(line for line in tuned.stderr.split("\n") if line.startswith("weights"))
    again = run(members, *files, "--weights", told.removeprefix("weights "))
    assert again.stdout == tuned.stdout


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"reverse": "direct"}, "has to be the reverse of"),
        ({"lm": "reverse"}, "is no language model of"),
        ({"direct": "lm"}, "translates nothing"),
    ],
)
def test_members_that_do_not_belong_together_are_refused(
    members: dict[str, Path], change: dict[str, str], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        load(members | {name: members[other] for name, other in change.items()})
