"""`dragoman export` and `dragoman record-quality`, as they are called."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman_bundle import Tokenizer, open_bundle
from dragoman_bundle.decoding import Evidence
from dragoman_bundle.manifest import FORMAT_VERSION, MANIFEST_FILE
from tests.export.commands import call
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, save

from dragoman_export import assembly
from dragoman_export.cli import export, record_quality
from dragoman_training.alignment.cli import align
from dragoman_training.checkpoint import Checkpoint

RESULTS = {
    "system": "a bundle",
    "beam": 5,
    "bundle": "de-en/3",
    "checksum": "",
    "precision": "int8",
    "shortlist": True,
    "length_penalty": 0.6,
    "bleu": 45.6789,
    "signature": "nrefs:1|case:mixed|tok:13a",
    "bleu_lc": 46.5,
    "bleu_lc_signature": "nrefs:1|case:lc|tok:13a",
    "chrf": 63.25,
    "chrf_signature": "nrefs:1|case:mixed",
    "sentences": 100,
    "seconds": 1.5,
}


def export_to(out: Path, *arguments: object) -> str:
    """What an export says."""
    code, said = call(export, *arguments, "--out", out)
    assert code == 0, said
    return said


@pytest.fixture(scope="module")
def exported(luong_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    destination = tmp_path_factory.mktemp("models") / "de-en" / "3"
    assert "MB int8/weights.bin" in export_to(destination, luong_file, "--precisions", "int8")
    return destination


@pytest.fixture
def bundle_folder(exported: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return shutil.copytree(exported, tmp_path / "models" / "de-en" / "3")


def test_export_takes_name_and_version_from_the_folder(bundle_folder: Path) -> None:
    manifest = open_bundle(bundle_folder).manifest
    assert (manifest.name, manifest.version, manifest.precisions) == ("de-en", "3", ("int8",))


def test_export_replaces_a_bundle_only_by_force(bundle_folder: Path, luong_file: Path) -> None:
    arguments = (luong_file, "--precisions", "fp32")
    code, said = call(export, *arguments, "--out", bundle_folder)
    assert (code, "--force" in said) == (1, True)
    code, said = call(export, *arguments, "--out", bundle_folder / "int8", "--force")
    assert (code, "is no bundle" in said) == (1, True)
    export_to(bundle_folder, *arguments, "--force")
    assert open_bundle(bundle_folder).manifest.precisions == ("fp32",)
    assert [path.name for path in bundle_folder.parent.iterdir()] == ["3"]


@pytest.mark.parametrize("out", ["ours", "./ours", "1", "models/de-en", "/1"])
def test_a_folder_that_says_no_name_and_version_is_refused(
    luong_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = call(export, luong_file, "--out", out, "--precisions", "int8")
    assert code == 2
    assert "does not end in NAME/VERSION, a version having a number" in said
    assert f"take models/{Path(out).name}/1, for example" in said
    assert list(tmp_path.iterdir()) == []


def test_name_that_a_server_could_not_serve_is_refused(luong_file: Path, tmp_path: Path) -> None:
    code, output = call(export, luong_file, "--out", tmp_path / "de en" / "1", "--precisions", "int8")
    assert code == 1
    assert "name is 'de en'; it takes letters" in output
    assert not (tmp_path / "de en").exists()


def test_interrupted_export_leaves_nothing_behind(
    luong_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(assembly, "make_graphs", interrupt)
    code, output = call(export, luong_file, "--out", tmp_path / "de-en" / "1")
    assert code == 130
    assert "Stopped; nothing was written." in output
    assert list((tmp_path / "de-en").iterdir()) == []


@pytest.fixture
def recipe_folder(tmp_path: Path) -> Path:
    """A folder with the corpus that the toy recipe names."""
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "train.de").write_text("ab cd\nab\nef gh\n" * 20)
    (folder / "train.en").write_text("BA DC\nBA\nFE HG\n" * 20)
    return folder


def test_export_learns_a_shortlist_from_the_training_corpus(
    luong_file: Path, recipe_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "models" / "de-en" / "1"
    options = ["--precisions", "int8", "--recipe-folder", recipe_folder, "--shortlist-frequent", 1]
    said = export_to(out, luong_file, *options)
    assert "shortlist: learning from 60 sentence pairs" in said
    assert "MB shortlist.npz" in said
    assert "--precisions int8 --shortlist --shortlist-frequent 1 --force\n" in (out / "README.md").read_text()
    assert_shortlist_of_the_corpus(out)


def assert_shortlist_of_the_corpus(out: Path) -> None:
    """A word offers what it stands beside and itself, as both sides share a vocabulary, and nothing else."""
    bundle = open_bundle(out)
    assert bundle.shortlist is not None
    tokenizer = bundle.source_tokenizer
    (ids,) = tokenizer.encode_ids(["e"])
    (own,) = bundle.shortlist.candidates([ids[-1:]])
    pieces = {tokenizer.piece(token) for token in own.tolist()}
    assert pieces >= {"E", "F", "e", "</s>"}
    assert not pieces & {"A", "B", "C", "D"}


@pytest.mark.parametrize(("num_pairs", "told"), [(0, "val.de"), (99, "99 sentences"), (120, None)])
def test_export_calibrates_the_confidence_on_the_validation_set(
    luong_file: Path, recipe_folder: Path, tmp_path: Path, num_pairs: int, told: str | None
) -> None:
    out = tmp_path / "models" / "de-en" / "1"
    if num_pairs:
        (recipe_folder / "val.de").write_text("ab cd\n" * num_pairs)
        (recipe_folder / "val.en").write_text("BA DC\n" * num_pairs)
    options = ["--precisions", "fp32", "--recipe-folder", recipe_folder, "--no-shortlist"]
    said = export_to(out, luong_file, *options)
    confidence = open_bundle(out).manifest.confidence
    if told is None:
        assert confidence is not None
        assert (confidence.sentences, confidence.length_ratio) == (120, 1)
        # The toy says nothing right.
        assert confidence.probability(Evidence(log_probability=-1, shortness=0, repetition=0)) < 0.05
    else:
        assert confidence is None
        assert re.search(rf" no confidence: [^;]*{told}", said)


@pytest.fixture
def aligner_folder(recipe_folder: Path, tmp_path: Path) -> Path:
    """Of the words of the training corpus."""
    out = tmp_path / "aligner"
    sides = ["--source", recipe_folder / "train.de", "--target", recipe_folder / "train.en"]
    code, output = call(align, "train", *sides, "--out", out)
    assert code == 0, output
    return out


def test_a_saved_aligner_makes_the_shortlist(
    luong_file: Path, recipe_folder: Path, aligner_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "models" / "de-en" / "1"
    options = ["--precisions", "int8", "--shortlist-frequent", 1, "--shortlist-from", aligner_folder]
    said = export_to(out, luong_file, *options, "--recipe-folder", recipe_folder)
    assert "shortlist: linking the words of 60 sentence pairs by hmm" in said
    assert "shortlist: 60 of 60 pairs linked" in said
    told = "--precisions int8 --shortlist-from aligner --shortlist-frequent 1 --force\n"
    assert told in (out / "README.md").read_text()
    assert_shortlist_of_the_corpus(out)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--no-shortlist"], 2, "goes without --shortlist-lexicon and --no-shortlist"),
        (["--recipe-folder", "nowhere"], 1, "the training corpus is not there"),
        (["--recipe-folder", "{corpus}", "--shortlist-from", "{corpus}"], 1, "is no saved aligner: it has"),
    ],
    ids=["no-shortlist", "no-corpus", "no-aligner"],
)
def test_what_no_shortlist_can_be_made_with_is_refused_before_anything_is_made(
    luong_file: Path, aligner_folder: Path, recipe_folder: Path, options: list[str], code: int, message: str
) -> None:
    out = recipe_folder.parent / "models" / "de-en" / "1"
    filled = [each.format(corpus=recipe_folder) for each in options]
    found, said = call(export, luong_file, "--out", out, "--shortlist-from", aligner_folder, *filled)
    assert found == code
    assert message in said
    assert "making the graphs" not in said
    assert not out.exists()


def test_without_the_corpus_there_is_no_shortlist_and_it_is_said(luong_file: Path, tmp_path: Path) -> None:
    out, arguments = tmp_path / "de-en" / "1", (luong_file, "--precisions", "int8")
    said = export_to(out, *arguments, "--recipe-folder", tmp_path)
    assert "no shortlist: the training corpus is not there" in said
    assert "--recipe-folder" in said
    assert open_bundle(out).shortlist is None
    assert "shortlist" not in export_to(out, *arguments, "--force", "--no-shortlist")
    options = ("--out", out, "--force", "--recipe-folder", tmp_path, "--shortlist")
    code, said = call(export, *arguments, *options)
    assert (code, "is not there" in said) == (1, True)


def test_graphs_are_checked_on_the_text_that_is_given_or_the_training_corpus(
    luong_file: Path, recipe_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "de-en" / "1"
    (tmp_path / "own.de").write_text("\n\nab cd ef\n")
    for options, told in (
        (("--recipe-folder", recipe_folder), "for sentences of the training corpus. "),
        (("--check-text", tmp_path / "own.de"), "for sentences of `own.de`. "),
        (("--recipe-folder", tmp_path), "for random tokens, drawn as it says them. "),
    ):
        said = export_to(out, luong_file, "--precisions", "int8", "--no-shortlist", "--force", *options)
        assert told in " ".join((out / "README.md").read_text().split())
    assert "checked on samples of the model's own: the training corpus is not there" in said


def test_a_model_begun_with_another_learns_no_shortlist_from_its_own_text(
    luong: Checkpoint, recipe_folder: Path, tmp_path: Path
) -> None:
    begun = replace(luong.recipe, training=replace(luong.recipe.training, start_from="general.safetensors"))
    path = save(replace(luong, recipe=begun), tmp_path / "best.safetensors")
    out = tmp_path / "de-en" / "1"
    arguments = (path, "--precisions", "fp32", "--recipe-folder", recipe_folder)
    said = export_to(out, *arguments)
    assert "begun with general.safetensors, whose corpus the recipe does not name" in said
    assert open_bundle(out).shortlist is None
    assert "--precisions fp32 --no-shortlist --force\n" in (out / "README.md").read_text()
    export_to(out, *arguments, "--shortlist", "--force")
    assert open_bundle(out).shortlist is not None
    assert "--precisions fp32 --shortlist --force\n" in (out / "README.md").read_text()


@pytest.mark.parametrize("option", ["--shortlist", "--no-shortlist"])
def test_export_chooses_the_head_of_a_transformer_that_aligns(
    tokenizer: Tokenizer, recipe_folder: Path, tmp_path: Path, option: str
) -> None:
    transformer = make_checkpoint(CONFIGS["transformer"], tokenizer, tokenizer)
    out, path = tmp_path / "de-en" / "1", save(transformer, tmp_path / "best.safetensors")
    arguments = (path, "--precisions", "fp32", option)
    said = export_to(out, *arguments, "--recipe-folder", recipe_folder)
    assert "of IBM model 1's links, and the last layer's mean" in said
    if option == "--no-shortlist":
        said = export_to(out, *arguments, "--force", "--recipe-folder", tmp_path)
        assert "are the mean of the last layer's heads: the training corpus is not there" in said
        assert not open_bundle(out).manifest.attention_of_input


@pytest.fixture
def results(bundle_folder: Path, tmp_path: Path) -> Path:
    """What `dragoman evaluate --json` prints of the bundle."""
    checksum = open_bundle(bundle_folder).manifest.checksum()
    (tmp_path / "results.json").write_text(json.dumps(RESULTS | {"checksum": checksum}))
    return tmp_path / "results.json"


def change(results: Path, **values: object) -> None:
    results.write_text(json.dumps(json.loads(results.read_text()) | values))


def test_recorded_quality_stands_in_manifest_and_card(bundle_folder: Path, results: Path) -> None:
    checksum = open_bundle(bundle_folder).manifest.checksum()
    arguments = (bundle_folder, results, "--test-set", "tatoeba/val")
    code, output = call(record_quality, *arguments)
    assert code == 0, output
    assert "tatoeba/val, int8, beam 5: BLEU 45.68" in output
    change(results, bleu=47.0)
    call(record_quality, *arguments)
    manifest = open_bundle(bundle_folder).manifest
    scores = [("BLEU", 47.0), ("BLEU lower-cased", 46.5), ("chrF", 63.25)]
    assert [(one.metric, one.score) for one in manifest.quality] == scores
    measured = {(one.precision, one.shortlist, one.length_penalty) for one in manifest.quality}
    assert measured == {("int8", True, 0.6)}
    assert manifest.checksum() == checksum
    card = (bundle_folder / "README.md").read_text()
    row = r"| tatoeba/val | int8 | with | 5 | 0.6 | BLEU | 47.00 | `nrefs:1\|case:mixed\|tok:13a` |"
    assert row in card
    assert "Not measured yet." not in card
    assert card.count("## Limits") == 1


def test_a_bundle_of_an_older_format_is_of_todays_once_written(bundle_folder: Path, results: Path) -> None:
    manifest = bundle_folder / MANIFEST_FILE
    older = json.loads(manifest.read_text()) | {"format_version": 2}
    del older["attention_of_input"]
    # Which did not tell how it was decoded.
    keys = ("test_set", "metric", "score", "signature", "precision", "beam_size")
    older["quality"] = [dict(zip(keys, ("val", "BLEU", 30.0, "nrefs:1", "int8", 5), strict=True))]
    manifest.write_text(json.dumps(older))
    code, output = call(record_quality, bundle_folder, results, "--test-set", "val")
    assert code == 0, output
    assert json.loads(manifest.read_text())["format_version"] == FORMAT_VERSION
    quality = open_bundle(bundle_folder).manifest.quality
    assert [one.score for one in quality if one.metric == "BLEU"] == [45.6789]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "does not hold what"),
        ('{"bleu": 1.0}', "has no 'system'"),
        ("[]", "does not hold what"),
        (json.dumps(RESULTS | {"bleu": "high"}), "does not hold what"),
        (json.dumps(RESULTS | {"shortlist": "no"}), "does not hold what"),
    ],
)
def test_results_of_another_kind_are_refused(
    bundle_folder: Path, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "results.json").write_text(content)
    code, output = call(record_quality, bundle_folder, tmp_path / "results.json", "--test-set", "x")
    assert code == 1
    assert message in output
    assert open_bundle(bundle_folder).manifest.quality == ()


NO_BUNDLE = {"bundle": None, "checksum": None}


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ({"checksum": "0" * 64}, "is of another bundle, de-en/3 of checksum 000"),
        (NO_BUNDLE | {"system": "a checkpoint"}, "is of no bundle: a checkpoint"),
        (NO_BUNDLE | {"system": "x", "precision": None, "shortlist": None}, "is of no bundle: x"),
    ],
)
def test_quality_of_something_else_is_refused_saying_what_to_measure(
    bundle_folder: Path, results: Path, measured: dict[str, object], message: str
) -> None:
    change(results, **measured)
    code, output = call(record_quality, bundle_folder, results, "--test-set", "x")
    assert code == 1
    assert message in output
    assert f"dragoman evaluate --bundle {bundle_folder} --json" in output
    assert open_bundle(bundle_folder).manifest.quality == ()
