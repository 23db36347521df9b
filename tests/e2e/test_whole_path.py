"""The whole path as a person walks it: train, export, serve, call; commands in processes of their own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman_bundle import open_bundle
from tests.conftest import toy_pairs
from tests.server.calls import linked
from tests.server.server_process import COMMAND, ServerProcess

from dragoman import Client
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.recipe.reader import load_recipe


def dragoman(*arguments: object, text: str = "") -> str:
    """Runs a command to its end and returns what it printed."""
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["fp32", "int8"])
def server(request: pytest.FixtureRequest, toy_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(toy_models, "--precision", request.param) as running:
        yield running
        assert running.stop()[0] == 0


BY_INT8 = pytest.mark.parametrize("server", ["int8"], indirect=True)


@pytest.fixture(scope="module")
def test_set(toy_folder: Path) -> list[object]:
    """The options of `dragoman evaluate` on the toy's."""
    return ["--source", toy_folder / "test.de", "--reference", toy_folder / "test.en", "--beam", 4, "--json"]


@pytest.fixture(scope="module")
def by_checkpoint(
    toy_checkpoint: Path, test_set: list[object], tmp_path_factory: pytest.TempPathFactory
) -> tuple[float, str]:
    """The BLEU and the translations of the checkpoint."""
    output = tmp_path_factory.mktemp("evaluated") / "checkpoint"
    told = dragoman("evaluate", "--checkpoint", toy_checkpoint, *test_set, "--output", output)
    return json.loads(told)["bleu"], output.read_text()


def test_the_server_translates_as_the_checkpoint_does(
    server: ServerProcess, by_checkpoint: tuple[float, str], test_set: list[object], tmp_path: Path
) -> None:
    options = ["--server", server.address, "--from", "de", "--to", "en", "--output", tmp_path / "server"]
    by_server = json.loads(dragoman("evaluate", *options, *test_set))
    bleu, translations = by_checkpoint
    assert bleu > 90
    assert by_server.keys() >= {"bleu", "bleu_lc", "chrf", "signature", "sentences", "seconds"}
    assert by_server["sentences"] == 60
    assert by_server["bleu"] == pytest.approx(bleu, abs=1.0)
    with Client(server.address) as client:
        (model,) = client.models()
    if model.precision == "fp32":
        assert (tmp_path / "server").read_text() == translations


@BY_INT8
def test_the_client_gets_one_translation_a_text_with_words_aligned(server: ServerProcess) -> None:
    texts = ["ein hund sieht der vogel.", "", "  ein hund.\n\nder vogel. "]
    with Client(server.address) as client:
        translations = client.translate(texts, source="de", target="en", alignments=True)
    first, empty, spaced = translations
    assert first.text == "a dog sees the bird."
    assert first.hypotheses[0].text == first.text
    assert {("hund", "dog"), ("vogel", "bird")} <= set(linked(texts[0], first))
    assert (empty.text, empty.hypotheses) == ("", ())
    assert spaced.text.startswith("  ")
    assert spaced.text.endswith(" ")
    assert spaced.text.count("\n\n") == 1


@BY_INT8
def test_the_commands_translate(server: ServerProcess, tmp_path: Path) -> None:
    options = ["--server", server.address, "--from", "de", "--to", "en"]
    assert dragoman("translate", *options, text="ein hund ruft ein mann.\n\n") == "a dog calls a man.\n\n"
    (tmp_path / "in").write_text("ein hund ruft ein mann.\n\nder fisch sucht der hund nie.\n")
    dragoman("translate-file", *options, tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "a dog calls a man.\n\nnever the fish seeks the dog.\n"


def test_the_card_s_command_trains_the_model_again(
    toy_models: Path, toy_folder: Path, tmp_path: Path
) -> None:
    card = (toy_models / "toy" / "1" / "README.md").read_text()
    (command,) = re.findall(r"^dragoman train (recipe\.toml(?:.*\\\n)+.*)$", card, re.MULTILINE)
    shell = f'{sys.executable} -m dragoman train {command} --set training.max_minutes=0.01 --out "$OUT"'
    done = subprocess.run(
        ["/bin/sh", "-c", shell],
        cwd=toy_models / "toy" / "1",
        env=os.environ | {"DATA": str(toy_folder), "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    again = load_checkpoint(tmp_path / "best.safetensors").recipe
    assert again.card == load_recipe(toy_folder / "toy.toml").card


@pytest.mark.long
def test_the_card_of_other_data_claims_nothing_of_the_recipe_s(toy_folder: Path, tmp_path: Path) -> None:
    pairs = "".join(f"{source}\t{target}\n" for source, target in toy_pairs(300, seed=1))
    (tmp_path / "own.tsv").write_text(pairs)
    own = f"data.train_tsv={os.path.relpath(tmp_path / 'own.tsv', toy_folder)}"
    settings = ["data.train_source=[]", "data.train_target=[]", own]
    settings += ["training.max_epochs=1", "vocabulary.size=60"]
    options = [option for setting in settings for option in ("--set", setting)]
    said = dragoman("train", toy_folder / "toy.toml", *options, "--out", tmp_path / "run")
    assert "The training data is not the recipe's, and so its [card] is left out" in said
    # The command that training prints, from a folder where no recipe lies.
    (checkpoint,) = re.findall(r"^Export it: dragoman export (\S+) --out models/toy/1$", said, re.MULTILINE)
    bundle = tmp_path / "models" / "own" / "1"
    dragoman("export", checkpoint, "--out", bundle, "--precisions", "fp32", "--shortlist")
    assert (bundle / "shortlist.npz").exists()
    card = (bundle / "README.md").read_text()
    assert "| Training data | `own.tsv`: 300 sentence pairs |" in card
    assert "| Licence | not stated |" in card
    assert "| Credit | not stated |" in card
    assert open_bundle(bundle).manifest.licence == ""
