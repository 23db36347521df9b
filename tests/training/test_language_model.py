"""The attention language model: it sees the past alone, counts rightly, and learns."""

import json
import math
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from dragoman.cli import main
from dragoman_training.batching import Pairs
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.cli import train
from dragoman_training.corpus import Corpus
from dragoman_training.models import LanguageModel, LanguageModelConfig, VocabularyShape, build_model
from dragoman_training.recipe import RecipeError
from dragoman_training.recipe_reader import load_recipe
from dragoman_training.validation import perplexity

VOCABULARY = VocabularyShape(source_size=30, target_size=30, shared=True, never_produced=(0, 1, 2))
SOURCE = {"source_ST": torch.tensor([[3], [3]]), "source_length_S": torch.tensor([1, 1])}

RECIPE = """
name = "toy-lm"
[data]
target_language = "en"
train_target = "train.en"
valid_target = "valid.en"
[vocabulary]
size = 100
model_type = "bpe"
[model]
family = "lm"
embedding_size = 32
layers = 1
units = 32
attention_units = 16
dropout = 0.1
[training]
batch_tokens = 600
max_epochs = 2
learning_rate = 5e-3
warmup_steps = 20
threads = 1
label_smoothing = 0.0
ema_decay = 0.9
precision = "fp32"
early_stopping = "loss"
"""


def tiny(*, span: int = 0, layers: int = 2) -> LanguageModel:
    torch.manual_seed(2)
    config = LanguageModelConfig(embedding_size=6, layers=layers, units=7, attention_units=5, span=span)
    model = build_model(config, VOCABULARY).eval()
    assert isinstance(model, LanguageModel)
    return model


@pytest.mark.parametrize("span", [0, 1, 3])
def test_a_later_token_never_changes_an_earlier_prediction(span: int) -> None:
    model = tiny(span=span)
    target_SU = torch.randint(4, 30, (2, 9))
    expected = model(**SOURCE, target_SU=target_SU)
    for position in range(1, 9):
        changed = target_SU.clone()
        changed[:, position:] = torch.randint(4, 30, (2, 9 - position))
        changed[:, position] = (target_SU[:, position] - 3) % 26 + 4
        found = model(**SOURCE, target_SU=changed)
        assert torch.equal(found[:, :position], expected[:, :position])
        assert not torch.allclose(found[:, position], expected[:, position])


@pytest.mark.parametrize("span", [0, 1, 3])
def test_steps_predict_what_the_whole_sequence_does(span: int) -> None:
    model = tiny(span=span)
    target_SU = torch.randint(4, 30, (2, 7))
    memory, state = model.encode(**SOURCE)
    features = []
    for token_S1 in target_SU.split(1, dim=1):
        features_SE, attention_S1T, state = model.step(token_S1, memory, state)
        features.append(features_SE)
        assert attention_S1T.shape == (2, 1, 1)
        assert not attention_S1T.any()
    torch.testing.assert_close(torch.stack(features, dim=1), model(**SOURCE, target_SU=target_SU))


def test_the_attention_reaches_as_far_back_as_its_span() -> None:
    """Where only the attention carries the past on, a change is felt for `span` steps and no longer."""
    model = tiny(span=2, layers=1)
    queries_SUH = torch.randn(1, 1, 7).expand(1, 6, 7)
    past_SNH = torch.randn(1, 6, 7)
    changed_SNH = past_SNH.clone()
    changed_SNH[:, 1] += 1
    one, other = (
        model._look_back(queries_SUH, states, model.attention.keys(states))
        for states in (past_SNH, changed_SNH)
    )
    assert (one != other).any(-1)[0].tolist() == [False, True, True, False, False, False]


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


def test_the_source_is_not_read() -> None:
    model = tiny()
    target_SU = torch.randint(4, 30, (2, 5))
    other = {"source_ST": torch.randint(4, 30, (2, 4)), "source_length_S": torch.tensor([4, 2])}
    assert torch.equal(model(**SOURCE, target_SU=target_SU), model(**other, target_SU=target_SU))


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
        ("export {lm} --out {out}/1", "is a language model, which can't be exported"),
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
        (
            "decoding.beam_size=9",
            r"decoding\.beam_size is 9, but changes nothing: .*decodes nothing; leave it",
        ),
        ("decoding.length_penalty=3", r"decoding\.length_penalty is 3\.0, but changes nothing"),
        ("data.valid_target=[]", "nothing to validate on"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused(tmp_path: Path, override: str, message: str) -> None:
    (tmp_path / "lm.toml").write_text(RECIPE)
    with pytest.raises(RecipeError, match=message):
        load_recipe(tmp_path / "lm.toml", (override,))


def test_sources_are_refused_where_nothing_is_translated_and_asked_for_where_something_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "lm.toml").write_text(RECIPE)
    sources = ('data.source_language="de"', 'data.train_source="train.de"', 'data.valid_source="valid.de"')
    with pytest.raises(RecipeError, match="lm, which translates nothing"):
        load_recipe(tmp_path / "lm.toml", sources)
    with pytest.raises(RecipeError, match=r"data\.source_language: is missing; only a language model"):
        load_recipe(tmp_path / "lm.toml", ('model={family="plain"}',))
