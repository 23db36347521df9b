"""Recipes are read strictly: whatever is wrong is named, with the way out."""

import dataclasses
from pathlib import Path

import pytest
from tests.training.toy_pairs import run_training

from dragoman_training import cli
from dragoman_training.models import BahdanauConfig, LuongConfig
from dragoman_training.recipe.data import RecipeError
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.recipe.reference import reference
from dragoman_training.recipe.settings import CardConfig, DecodingConfig, TrainingConfig

MINIMAL = """
name = "x"
[data]
source_language = "de"
target_language = "en"
train_tsv = "train.tsv"
valid_tsv = "valid.tsv"
[model]
family = "luong"
"""


def recipe_file(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text)
    return path


def test_what_is_not_given_takes_its_default(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file(tmp_path, MINIMAL))
    assert recipe.model == LuongConfig()
    assert recipe.data.train_tsv == ("train.tsv",)
    assert recipe.training.label_smoothing == 0.1


def test_the_family_decides_which_keys_a_model_has(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, MINIMAL.replace('"luong"', '"bahdanau"\ncell = "lstm"'))
    assert load_recipe(path).model == BahdanauConfig(cell="lstm")
    with pytest.raises(RecipeError, match=r'unknown key "model\.decoder_layers"'):
        load_recipe(path, ("model.decoder_layers=2",))


def test_overrides_are_typed_like_toml(tmp_path: Path) -> None:
    recipe = load_recipe(
        recipe_file(tmp_path, MINIMAL),
        ("training.seed=7", "training.clip_norm=2", "name=other", "vocabulary.shared=false"),
    )
    assert (recipe.training.seed, recipe.training.clip_norm, recipe.name) == (7, 2.0, "other")
    assert load_recipe(recipe_file(tmp_path, MINIMAL), ("name=2026-11-23",)).name == "2026-11-23"
    assert not recipe.vocabulary.shared


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.lerning_rate=1", r'unknown key "training\.lerning_rate"; .* "training\.learning_rate"'),
        ("max_epochs=1", r'unknown key "max_epochs"; known: name, .*; did you mean "training\.max_epochs"\?'),
        ("training.zzz=1", r'unknown key "training\.zzz"; known: batch_tokens'),
        ("training.weight_decay=0.1", r"training\.weight_decay is 0\.1, but Adam has none"),
        ("training.warmup_steps=0", r"training\.warmup_steps is 0, but training\.decay is inverse_sqrt"),
        ("training.accumulate_batches=0", r"training\.accumulate_batches is 0, but must be at least 1"),
        ("scheduled_sampling.teacher_forcing=1.5", r"teacher_forcing is 1\.5, but must be at most 1"),
        ("scheduled_sampling.pace=0", r"scheduled_sampling\.pace is 0\.0, but must be at least 1"),
        ("scheduled_sampling.pace=inf", r"scheduled_sampling\.pace is inf, but must be finite"),
        ("subword_sampling.alpha=nan", r"subword_sampling\.alpha is nan, but must be at least 0"),
        ("subword_sampling.nbest_size=1", r"nbest_size is 1, but must be from 2 to 512, or -1"),
        ("subword_sampling.nbest_size=600", r"nbest_size is 600, but must be from 2 to 512, or -1"),
        ("training.learning_rate=nan", r"training\.learning_rate is nan, but must be above 0"),
        ("training.batch_tokens=-5", r"training\.batch_tokens is -5, but must be at least 1"),
        ("training.label_smoothing=2", r"training\.label_smoothing is 2\.0, but must be at least 0"),
        ("decoding.max_output_ratio=inf", r"decoding\.max_output_ratio is inf; it must be from 0 to 1000"),
        ("decoding.length_penalty=inf", r"decoding\.length_penalty is inf; it must be from 0 to 10"),
        ("decoding.beam_size=100000", r"decoding\.beam_size is 100000; it must be from 1 to 1024"),
        ("training.validate_every_epochs=1e308", r"validate_every_epochs is 1e\+308, but must be at most"),
        ("training.seed=99999999999999999999", r"seed is 99999999999999999999, but must be at most"),
        ("training.threads=999999999", r"training\.threads is 999999999, but must be at most 1024"),
        ("vocabulary.size=1000000000000", r"vocabulary\.size is 1000000000000, but must be at most"),
        ("vocabulary.character_coverage=0.5", r"character_coverage is 0\.5, but must be at least 0\.98"),
        ("name=../../x", r"name is '\.\./\.\./x'; it takes letters"),
        ("data.source_language=de en", r"data\.source_language is 'de en', which is no code of a language"),
        ("data.target_language=", r"data\.target_language is '', which is no code of a language"),
        ("decoding.beam_size=0", r"decoding\.beam_size is 0; it must be from 1 to 1024"),
        ("vocabulary.size=-1", r"vocabulary\.size is -1"),
        ("trainin.seed=1", r'unknown key "trainin"; did you mean "training"'),
        ("model.family=luongg", r'model\.family: is "luongg"; did you mean "luong"'),
        ("model.decoder_units=0", r"model\.decoder_units is 0, but must be at least 1"),
        ("model.dropout=1.0", r"model\.dropout is 1\.0, but must be at least 0 and below 1"),
        (f"training.max_minutes=1{'0' * 400}", r"training\.max_minutes: has 401 digits, more than a number"),
        ("data.hugging_face=opus", r'unknown key "data\.hugging_face"'),
        ("training.seed=1.5", r"training\.seed: must be a whole number, not 1\.5"),
        ("training.seed=true", r"training\.seed: must be a whole number, not True"),
        ("training.decay=steps", r"training\.decay: is 'steps', but must be one of 'inverse_sqrt'"),
        ("training.adam_betas=[0.9]", r"training\.adam_betas: must have 2 values, not 1"),
        ("training=3", r"training: must be a table, not 3"),
        ("data.train_target=['a']", r"either train_source and train_target, or train_tsv"),
        ("data.valid_tsv=[]", r"nothing to validate on; give valid_tsv$"),
        ("seed", r'override "seed" is not of the form key=value'),
        ("data.train_weights=[1, 2]", r"data\.train_weights has 2 numbers, but there are 1"),
        ("data.train_weights=0", r"data\.train_weights has 0, but each must be above 0"),
        ("data.train_weights=2000", r"data\.train_weights has 2000, but each must be .* at most 1000"),
        ("data.train_weights=nan", r"data\.train_weights has nan, but each"),
        ("filter.max_length_ratio=0.5", r"filter\.max_length_ratio is 0\.5, .* at least 1"),
        ("filter.max_characters=-1", r"filter\.max_characters is -1, .* at least 0"),
        ("scheduled_sampling.pace=50", r'd_sampling\.pace is 50\.0, but changes nothing: .*decay is "none"'),
        ("scheduled_sampling={teacher_forcing=0.5, least=0.2}", r"g\.least is 0\.2, but changes nothing"),
        ("scheduled_sampling.token=sampled", r"token is sampled, but changes nothing: .*read always"),
        ("subword_sampling.alpha=0.1", r"changes nothing: neither subword_sampling\.source nor .*leave it"),
        ("subword_sampling.nbest_size=64", r"nothing: neither subword_sampling\.source nor .*leave it"),
        (
            'model={family="multi-head", attention_units=12, heads=5}',
            r"model\.heads is 5, which does not divide model\.attention_units, 12; take one of 1, 2, 3, 4",
        ),
        ('model={family="multi-head", heads=0}', r"model\.heads is 0, but must be at least 1"),
        ("model.attention=local-p", r"model\.attention is local-p, but model\.window is 0"),
        ("model.attention=local-m", r"model\.attention is local-m, but model\.window is 0"),
        ("model.window=3", r"model\.window is 3, but model\.attention is global"),
        ('model={family="luong", attention="local-m", window=-1}', r"window is -1, but must be at least 0"),
        (
            'model={family="luong", score="dot", encoder_units=200}',
            r"model\.score is dot.* model\.decoder_units is 512 .* have 400; make them equal, or take",
        ),
        ('model={family="luong", score="scaled_dot", decoder_units=300}', r"score is scaled_dot.* is 300 "),
        ('model={family="structured", annotations=0}', r"model\.annotations is 0, but must be at least 1"),
        ('model={family="structured", redundancy_penalty=-1}', r"redundancy_penalty is -1.*, but must"),
        ('model={family="plain", layers=0}', r"model\.layers is 0, but must be at least 1"),
        ('model={family="plain", embedding_std=0}', r"model\.embedding_std is 0.*, but must be above 0"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(recipe_file(tmp_path, MINIMAL), (override,))


@pytest.mark.parametrize(
    ("language", "meant"), [("french", '"fr"'), ("fr_FR", '"fr-FR"'), ("klingonese", '"fr" or "fr-FR"')]
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_language_that_is_no_tag_is_refused_with_what_to_write(
    tmp_path: Path, side: str, language: str, meant: str
) -> None:
    with pytest.raises(ValueError, match=rf"data\.{side}_language is '{language}'.*{meant}$"):
        load_recipe(recipe_file(tmp_path, MINIMAL), (f"data.{side}_language={language}",))


CARD = """
[card]
description = "Good for this."
data = "Their texts"
licence = "CC0-1.0"
credit = "Theirs"
"""


@pytest.mark.parametrize(
    "override",
    [
        "data.train_tsv=ours.tsv",
        "data.train_tsv = ['train.tsv', 'ours.tsv']",
        'data={source_language="de", target_language="en", train_tsv="ours.tsv", valid_tsv="valid.tsv"}',
    ],
)
def test_a_card_of_other_data_is_left_out(tmp_path: Path, override: str) -> None:
    path = recipe_file(tmp_path, MINIMAL + CARD)
    assert load_recipe(path, (override,)).card == CardConfig()
    assert load_recipe(path, ("card.credit=Ours", override)).card == CardConfig(credit="Ours")
    same_data = ("data.valid_tsv=ours.tsv", "data.max_tokens=50", "training.seed=7")
    assert load_recipe(path, same_data).card.data == "Their texts"


@pytest.mark.parametrize(("card", "said"), [(CARD, ", and so its [card] is left out: say"), ("", ": say")])
def test_only_a_card_that_is_there_is_said_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, card: str, said: str
) -> None:
    monkeypatch.setattr(cli, "_train", lambda *arguments, **options: None)
    path, options = recipe_file(tmp_path, MINIMAL + card), ["--out", tmp_path / "run", "--device", "cpu"]
    output = run_training(path, *options, "--set", "data.train_tsv=ours.tsv")
    assert f"The training data is not the recipe's{said} with --set card.data" in output


def test_what_one_kind_of_vocabulary_cannot_do_is_refused(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, MINIMAL)
    sampling = ("subword_sampling.source=true", "subword_sampling.alpha=1.5")
    assert load_recipe(path, sampling).subword_sampling.alpha == 1.5
    with pytest.raises(RecipeError, match=r"alpha is 1\.5, but .* bpe it is a probability: from 0 to 1"):
        load_recipe(path, (*sampling, "vocabulary.model_type=bpe"))
    nbest = ("subword_sampling.source=true", "subword_sampling.nbest_size=64", "vocabulary.model_type=bpe")
    message = r"nbest_size is 64, but changes nothing: vocabulary\.model_type is bpe"
    with pytest.raises(RecipeError, match=message):
        load_recipe(path, nbest)


def test_the_output_limit_follows_the_source() -> None:
    config = DecodingConfig(max_output_ratio=1.5, max_output_margin=4, max_output_tokens=20)
    assert [config.output_limit(length) for length in (1, 2, 10, 100)] == [6, 7, 19, 20]


def test_a_missing_key_is_named_and_what_is_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"data\.source_language: is missing"):
        load_recipe(recipe_file(tmp_path, MINIMAL.replace('source_language = "de"', "")))
    with pytest.raises(RecipeError, match="not a TOML file"):
        load_recipe(recipe_file(tmp_path, "name = "))


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[3] / "training" / "recipes").glob("*.toml")), ids=lambda p: p.stem
)
def test_every_shipped_recipe_can_be_read(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.name == path.stem
    assert recipe.card.credit
    assert recipe.card.licence


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "recipes.md"


def test_the_page_is_what_the_settings_say() -> None:
    assert PAGE.read_text() == reference(), (
        "write it anew: python -m dragoman_training.recipe.reference > docs/reference/recipes.md"
    )


def test_every_key_is_there_with_its_default() -> None:
    lines = reference().splitlines()
    start = lines.index("## `[training]`")
    end = lines.index("## `[scheduled_sampling]`")
    for field in dataclasses.fields(TrainingConfig):
        (line,) = [line for line in lines[start:end] if line.startswith(f"| `{field.name}` |")]
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert f"| `{field.default}` |" in line
    assert any(line.startswith("| `alpha` | number | `0.2` |") for line in lines)
    assert '## `[model]` with `family = "bahdanau"`' in lines
