"""The attention language model: it reads beginnings, counts rightly, learns, and continues texts."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tests.training.toy_language_model import RECIPE

from dragoman.cli import main
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.cli import train
from dragoman_training.data.batching import Pairs, pad_ids
from dragoman_training.data.corpus import Corpus
from dragoman_training.decoding.search import Candidates, Ids, Scores, beam_search
from dragoman_training.decoding.stepper import TorchStepper
from dragoman_training.models import LanguageModel, LanguageModelConfig, VocabularyShape, build_model
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.recipe.settings import DecodingConfig, RecipeError
from dragoman_training.run.validation import perplexity

VOCABULARY = VocabularyShape(source_size=30, target_size=30, shared=True, bos=2, never_produced=(0, 1, 2))
SOURCE = {"source_ST": torch.tensor([[3], [3]]), "source_length_S": torch.tensor([1, 1])}


def tiny(*, span: int = 0, layers: int = 2) -> LanguageModel:
    torch.manual_seed(2)
    config = LanguageModelConfig(embedding_size=6, layers=layers, units=7, attention_units=5, span=span)
    model = build_model(config, VOCABULARY).eval()
    assert isinstance(model, LanguageModel)
    return model


def test_a_step_makes_the_key_of_its_own_state_alone() -> None:
    model = tiny()
    made = 0

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal made
        made += output.shape[1]

    model.attention.key.register_forward_hook(count)
    memory, state = model.encode(**SOURCE)
    for _ in range(6):
        _, _, state = model.step(torch.tensor([[4], [5]]), memory, state)
    assert made == 7  # Of the zeros too that the LSTM begins with.


def test_where_no_text_has_a_beginning_no_layer_reads_one() -> None:
    """Training would take longer."""
    model, read = tiny(), []
    model.reader[0].register_forward_hook(lambda module, inputs, output: read.append(len(inputs[0])))
    model.encode(**SOURCE)
    assert read == []
    model.encode(torch.tensor([[5, 3], [3, 0]]), torch.tensor([2, 1]))
    assert read == [2]


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


@pytest.mark.parametrize("span", [0, 3])
@torch.inference_mode()
def test_the_attention_at_a_word_is_that_on_the_state_that_has_just_read_it(span: int) -> None:
    model = tiny(span=span)
    text_1U, read = TEXTS[5:6], READ[5]
    memory, state = model.encode(torch.tensor([[3]]), torch.tensor([1]))
    _, attention_SUT = step_through(model, beginnings([5]), rest(4)[5:])
    for token_11 in torch.cat([torch.tensor([[2]]), text_1U], dim=1).split(1, dim=1):
        _, _, state = model.step(token_11, memory, state)
    # Behind the zeros come the states that have read bos and each of the text's tokens.
    states_1NH = torch.cat([memory["past"], state["past"]], dim=1)
    for step in range(4):
        last = 1 + read + step
        first = max(0, last - span) if span else 0
        past_1NH = states_1NH[:, first:last]
        _, weights_11N = model.attention(
            states_1NH[:, last : last + 1],
            model.attention.keys(past_1NH),
            past_1NH,
            torch.ones_like(past_1NH[:, :, 0]),
        )
        expected_N = torch.cat([torch.zeros(first), weights_11N[0, 0]])[2 : 2 + read]
        found_N = attention_SUT[0, step, :read]
        torch.testing.assert_close(found_N[: len(expected_N)], expected_N)
        assert not found_N[len(expected_N) :].any()


class NextTokens:
    """Knows of a model only how probable the next token of a whole text is; its context is the texts."""

    vocabulary_size, bos_id, eos_id = 30, 2, 3

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    def encode(self, sources: Sequence[Sequence[int]]) -> list[list[list[int]]]:
        # Each sentence's beginning, bos and all, and the rows' texts.
        return [[[2, *source[:-1]] for source in sources], [[2, *source[:-1]] for source in sources]]

    def step(
        self, context: list[list[list[int]]], token_SK: Ids, parent_SK: Ids, score_SK: Scores
    ) -> tuple[Candidates, list[list[list[int]]]]:
        beginning, rows = context
        sentences, beam = token_SK.shape
        texts = [list(rows[parent]) for parent in parent_SK.flatten()]
        for row, token in enumerate(token_SK.flatten().tolist()):
            if token != self.bos_id:
                texts[row].append(token)
        scores = []
        for text in texts:
            features = self.model(torch.tensor([[3]]), torch.tensor([1]), torch.tensor([text]))[0, -1]
            scores.append(self.model.output(features).log_softmax(dim=-1))
        running_RV = torch.stack(scores) + torch.from_numpy(score_SK).flatten().unsqueeze(1)
        score_SC, index_SC = running_RV.view(sentences, -1).topk(2 * beam, dim=1)
        return Candidates(score_SC=score_SC.numpy(), index_SC=index_SC.numpy()), [beginning, texts]

    def select(self, context: list[list[list[int]]], sentences: Ids) -> list[list[list[int]]]:
        return [[context[0][sentence] for sentence in sentences], context[1]]


@pytest.mark.parametrize("span", [0, 2])
@torch.inference_mode()
def test_to_continue_is_to_search_for_the_most_probable_next_tokens(span: int) -> None:
    model = tiny(span=span)
    for parameter in model.parameters():
        parameter.mul_(2)  # It shall have preferences.
    decoding = DecodingConfig(beam_size=3, max_output_tokens=9)
    sources = [[*TEXTS[number, :read].tolist(), 3] for number, read in enumerate(READ)]
    found = beam_search(TorchStepper(model, source_pad_id=0, bos_id=2, eos_id=3), sources, decoding)
    expected = beam_search(NextTokens(model), sources, decoding)
    assert [[each.tokens for each in one] for one in found] == [
        [each.tokens for each in one] for one in expected
    ]
    scores = [[[each.score for each in one] for one in side] for side in (found, expected)]
    np.testing.assert_allclose(*scores, atol=1e-5)


@pytest.fixture(scope="module")
def checkpoint(toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model of the toy corpus' English."""
    recipe = toy_folder / "lm.toml"
    recipe.write_text(RECIPE)
    folder = tmp_path_factory.mktemp("lm")
    result = CliRunner().invoke(train, [str(recipe), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert "BLEU" not in result.output
    assert "Measure it: dragoman evaluate --checkpoint" in result.output
    return folder / "best.safetensors"


def test_it_learns(checkpoint: Path) -> None:
    validations = load_checkpoint(checkpoint).progress["validations"]
    assert [each["bleu"] for each in validations] == [None, None]
    # Each of the toy's words can be told from the one before it to within a few others.
    assert validations[-1]["perplexity"] < min(6.0, validations[0]["perplexity"])


def test_a_stopped_run_goes_on(checkpoint: Path, toy_folder: Path) -> None:
    options = ["--out", str(checkpoint.parent), "--resume", "--set", "training.max_epochs=3"]
    before = checkpoint.read_bytes()
    result = CliRunner().invoke(train, [str(toy_folder / "lm.toml"), *options])
    try:
        assert result.exit_code == 0, result.output
        assert len(load_checkpoint(checkpoint.with_name("last.safetensors")).progress["validations"]) == 3
    finally:
        checkpoint.write_bytes(before)


@torch.inference_mode()
def test_perplexity_is_that_of_the_probabilities_of_the_next_tokens(checkpoint: Path) -> None:
    loaded = load_checkpoint(checkpoint)
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


def test_evaluate_reports_its_perplexity(checkpoint: Path, tmp_path: Path) -> None:
    reference = tmp_path / "test.en"
    reference.write_text("the old man sees a dog.\n\n\x01\nnever the dog.\n")
    told = CliRunner().invoke(
        main, ["evaluate", "--checkpoint", str(checkpoint), "--reference", str(reference), "--json"]
    )
    assert told.exit_code == 0, told.output
    results = json.loads(told.stdout)
    loaded = load_checkpoint(checkpoint)
    lines = ["the old man sees a dog.", "never the dog."]
    pairs = Pairs(Corpus(["", ""], lines), loaded.target_tokenizer, loaded.target_tokenizer, max_tokens=None)
    assert results["perplexity"] == round(perplexity(loaded.model, pairs), 4)
    assert results["tokens"] == sum(len(ids) + 1 for ids in loaded.target_tokenizer.encode_ids(lines))
    assert results["sentences"] == 2  # Normalization leaves nothing of the third line.
    assert "bleu" not in results


def test_text_of_which_nothing_is_left_has_no_perplexity(checkpoint: Path, tmp_path: Path) -> None:
    reference = tmp_path / "test.en"
    reference.write_text("\x01\n")
    told = CliRunner().invoke(
        main, ["evaluate", "--checkpoint", str(checkpoint), "--reference", str(reference)]
    )
    assert told.exit_code == 1
    assert "leaves nothing of its lines" in told.output


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate --checkpoint {lm} --source {en} --reference {en}", "leave --source out"),
        (
            "evaluate --checkpoint {lm} --checkpoint {lm} --source {en} --reference {en}",
            "no ensembles are made of these",
        ),
        ("evaluate --checkpoint {toy} --reference {en}", "give it --source"),
        ("evaluate --bundle {toy} --reference {en}", "only a language model"),
        (
            "evaluate --checkpoint {lm} --reference {en} --output {out}",
            "--output is of translations: give --source",
        ),
        ("evaluate --checkpoint {lm} --reference {en} --length-penalty 2", "--length-penalty is of"),
        ("evaluate --checkpoint {lm} --reference {en} --no-shortlist", "--shortlist is of translations"),
        ("evaluate --checkpoint {lm} --reference {en} --beam 1", "--beam is of translations"),
        ("evaluate --checkpoint {lm} --reference {en} --from de", "--from is of translations"),
        ("export {lm} --out {out}/1 --shortlist", "a shortlist is learnt from pairs of sentences"),
        (
            "study {lm} --source {en} --reference {en} --out {out}",
            "is a language model and translates nothing",
        ),
    ],
)
def test_what_a_language_model_is_not_is_said(
    command: str, message: str, checkpoint: Path, toy_checkpoint: Path, toy_folder: Path, tmp_path: Path
) -> None:
    places = {"lm": checkpoint, "toy": toy_checkpoint, "en": toy_folder / "test.en", "out": tmp_path / "out"}
    told = CliRunner().invoke(main, [word.format(**places) for word in command.split()])
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
        (
            "subword_sampling.source=true",
            r"subword_sampling\.source is True, but changes nothing: .* no source",
        ),
        ("data.valid_target=[]", "nothing to validate on"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused(tmp_path: Path, override: str, message: str) -> None:
    (tmp_path / "lm.toml").write_text(RECIPE)
    with pytest.raises(RecipeError, match=message):
        load_recipe(tmp_path / "lm.toml", (override,))


def test_a_recipe_says_how_texts_are_continued(tmp_path: Path) -> None:
    (tmp_path / "lm.toml").write_text(RECIPE)
    recipe = load_recipe(tmp_path / "lm.toml", ("decoding.beam_size=9", "decoding.max_output_tokens=20"))
    assert (recipe.decoding.beam_size, recipe.decoding.max_output_tokens) == (9, 20)


def test_sources_are_refused_where_nothing_is_translated_and_asked_for_where_something_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "lm.toml").write_text(RECIPE)
    sources = ('data.source_language="de"', 'data.train_source="train.de"', 'data.valid_source="valid.de"')
    with pytest.raises(RecipeError, match="lm, which translates nothing"):
        load_recipe(tmp_path / "lm.toml", sources)
    with pytest.raises(RecipeError, match=r"data\.source_language: is missing; only a language model"):
        load_recipe(tmp_path / "lm.toml", ('model={family="plain"}',))
