"""The attention language model: it reads beginnings, counts rightly, learns, and continues texts."""

import json
import math
from pathlib import Path

import pytest
import torch
from tests.training.toy_pairs import invoke

from dragoman.cli import main
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.data.batching import Pairs, pad_ids
from dragoman_training.data.corpus import Corpus
from dragoman_training.models import LanguageModel, LanguageModelConfig, VocabularyShape, build_model
from dragoman_training.recipe.data import RecipeError
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.run.validation import perplexity

VOCABULARY = VocabularyShape(source_size=30, target_size=30, shared=True, bos=2, never_produced=(0, 1, 2))
SOURCE = {"source_ST": torch.tensor([[3], [3]]), "source_length_S": torch.tensor([1, 1])}


def tiny(*, span: int = 0, layers: int = 2) -> LanguageModel:
    torch.manual_seed(2)
    config = LanguageModelConfig(embedding_size=6, layers=layers, units=7, attention_units=5, span=span)
    model = build_model(config, VOCABULARY).eval()
    assert isinstance(model, LanguageModel)
    return model


TEXTS = torch.randint(4, 30, (6, 8), generator=torch.Generator().manual_seed(1))
"""What is read after bos."""
READ = list(range(6))
"""Tokens of each text that are its beginning: none of the first, five of the last."""


def beginnings(numbers: list[int]) -> dict[str, torch.Tensor]:
    """Of these texts, each with its eos behind it, as sources."""
    sources = [[*TEXTS[number, : READ[number]].tolist(), 3] for number in numbers]
    return {
        "source_ST": pad_ids(sources, 0),
        "source_length_S": torch.tensor([len(source) for source in sources]),
    }


def rest(num_steps: int) -> torch.Tensor:
    """What is then given to each step, bos first: it stands for what was to be read last."""
    return torch.stack([torch.cat([torch.tensor([2]), text[n:]])[:num_steps] for n, text in enumerate(TEXTS)])


def step_through(
    model: LanguageModel, source: dict[str, torch.Tensor], target_SU: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Features [S, U, E] and attention [S, U, T]."""
    memory, state = model.encode(**source)
    features, attention = [], []
    for token_S1 in target_SU.split(1, dim=1):
        features_SE, attention_S1T, state = model.step(token_S1, memory, state)
        features.append(features_SE)
        attention.append(attention_S1T)
    return torch.stack(features, dim=1), torch.cat(attention, dim=1)


@pytest.mark.parametrize("span", [0, 1, 3])
@torch.inference_mode()
def test_to_read_a_beginning_and_step_on_is_to_step_through_the_whole_text(span: int) -> None:
    model = tiny(span=span)
    nothing = {name: value[:1].expand(6, *value.shape[1:]) for name, value in SOURCE.items()}
    whole_SUE, _ = step_through(model, nothing, torch.cat([torch.full((6, 1), 2), TEXTS], dim=1))
    found_SUE, _ = step_through(model, beginnings(READ), rest(4))
    for number, read in enumerate(READ):
        torch.testing.assert_close(found_SUE[number], whole_SUE[number, read : read + 4])


@pytest.mark.parametrize("span", [0, 1, 3])
@torch.inference_mode()
def test_decoding_from_a_beginning_is_stepping_from_it(span: int) -> None:
    model = tiny(span=span)
    found_SUE, _ = step_through(model, beginnings(READ), rest(4))
    torch.testing.assert_close(model(**beginnings(READ), target_SU=rest(4)), found_SUE)


@torch.inference_mode()
def test_padding_of_a_beginning_changes_nothing() -> None:
    model = tiny()
    together_SUE, attention_SUT = step_through(model, beginnings(READ), rest(4))
    for number, read in enumerate(READ):
        alone_SUE, alone_SUT = step_through(model, beginnings([number]), rest(4)[number : number + 1])
        torch.testing.assert_close(together_SUE[number], alone_SUE[0])
        torch.testing.assert_close(attention_SUT[number, :, : read + 1], alone_SUT[0])
        assert not attention_SUT[number, :, read:].any()  # Its eos is never read.


def test_it_learns(toy_lm: Path) -> None:
    said = (toy_lm.parent / "said").read_text()
    assert "BLEU" not in said
    assert "Measure it: dragoman evaluate --checkpoint" in said
    validations = load_checkpoint(toy_lm).progress["validations"]
    assert [each["bleu"] for each in validations] == [None, None]
    # Each of the toy's words can be told from the one before it to within a few others.
    assert validations[-1]["perplexity"] < min(6.0, validations[0]["perplexity"])


@torch.inference_mode()
def test_perplexity_is_that_of_the_probabilities_of_the_next_tokens(toy_lm: Path) -> None:
    loaded = load_checkpoint(toy_lm)
    model, tokenizer = loaded.model, loaded.target_tokenizer
    lines = ["the old man sees a dog.", "never a bird.", "a."]
    logs: list[float] = []
    for ids in tokenizer.encode_ids(lines):
        memory, state = model.encode(torch.tensor([[3]]), torch.tensor([1]))
        for read, said in zip([tokenizer.bos_id, *ids], [*ids, tokenizer.eos_id], strict=True):
            features, _, state = model.step(torch.tensor([[read]]), memory, state)
            logits = features[0] @ model.output.embedding.weight.T + model.output.bias
            logs.append(float(logits.log_softmax(dim=0)[said]))
    expected = math.exp(-sum(logs) / len(logs))
    pairs = Pairs(Corpus([""] * 3, lines), tokenizer, tokenizer, max_tokens=None)
    assert perplexity(model, pairs) == pytest.approx(expected, rel=1e-4)
    assert pairs.num_target_tokens(range(3)) == len(logs)


def test_evaluate_reports_its_perplexity(toy_lm: Path, tmp_path: Path) -> None:
    reference = tmp_path / "test.en"
    reference.write_text("the old man sees a dog.\n\n\x01\nnever the dog.\n")
    told = invoke(main, "evaluate", "--checkpoint", toy_lm, "--reference", reference, "--json")
    assert told.exit_code == 0, told.output
    results = json.loads(told.stdout)
    loaded = load_checkpoint(toy_lm)
    lines = ["the old man sees a dog.", "never the dog."]
    pairs = Pairs(Corpus(["", ""], lines), loaded.target_tokenizer, loaded.target_tokenizer, max_tokens=None)
    assert results["perplexity"] == round(perplexity(loaded.model, pairs), 4)
    assert results["tokens"] == sum(len(ids) + 1 for ids in loaded.target_tokenizer.encode_ids(lines))
    assert results["sentences"] == 2  # Normalization leaves nothing of the third line.
    assert "bleu" not in results


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate --checkpoint {lm} --source {en} --reference {en}", "leave --source out"),
        (
            "evaluate --checkpoint {lm} --checkpoint {lm} --source {en} --reference {en}",
            "no ensembles are made",
        ),
        ("evaluate --checkpoint {toy} --reference {en}", "give it --source"),
        ("evaluate --bundle {toy} --reference {en}", "only a language model"),
        ("evaluate --checkpoint {lm} --reference {en} --output {out}", "--output is of translations: give"),
        ("evaluate --checkpoint {lm} --reference {en} --length-penalty 2", "--length-penalty is of"),
        ("evaluate --checkpoint {lm} --reference {en} --no-shortlist", "--shortlist is of translations"),
        ("evaluate --checkpoint {lm} --reference {en} --beam 1", "--beam is of translations"),
        ("evaluate --checkpoint {lm} --reference {en} --from de", "--from is of translations"),
        ("export {lm} --out {out}/1 --shortlist", "a shortlist is learnt from pairs of sentences"),
        ("study {lm} --source {en} --reference {en} --out {out}", "a language model and translates nothing"),
    ],
)
def test_what_a_language_model_is_not_is_said(
    command: str, message: str, toy_lm: Path, toy_checkpoint: Path, toy_folder: Path, tmp_path: Path
) -> None:
    places = {"lm": toy_lm, "toy": toy_checkpoint, "en": toy_folder / "test.en", "out": tmp_path / "out"}
    told = invoke(main, *(word.format(**places) for word in command.split()))
    assert told.exit_code != 0
    assert message in " ".join(told.output.split())
    assert "no shortlist" not in told.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('data.source_language="de"', "train_source and train_target name different numbers"),
        ('data.train_source="train.de"', "data.source_language: is missing, though"),
        ('data.train_tsv="train.tsv"', "data.source_language: is missing, though"),
        ("training.early_stopping=bleu", 'set training.early_stopping = "loss"'),
        ("vocabulary.shared=false", "one side and one vocabulary"),
        ("model.span=-1", "model.span is -1, but must be at least 0"),
        ("model.family=plain", "unknown key"),
        ("subword_sampling.source=true", r"subword_sampling\.source is True, .* nothing: .* no source"),
        ("data.valid_target=[]", "nothing to validate on"),
        ("filter.leave_out_copies=true", r"filter\.leave_out_copies .* model\.family is lm"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused(toy_folder: Path, override: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(toy_folder / "lm.toml", (override,))


def test_sources_are_refused_where_nothing_is_translated_and_asked_for_where_something_is(
    toy_folder: Path,
) -> None:
    sources = ('data.source_language="de"', 'data.train_source="train.de"', 'data.valid_source="valid.de"')
    with pytest.raises(RecipeError, match="lm, which translates nothing"):
        load_recipe(toy_folder / "lm.toml", sources)
    with pytest.raises(RecipeError, match=r"data\.source_language: is missing; only a language model"):
        load_recipe(toy_folder / "lm.toml", ('model={family="plain"}',))
