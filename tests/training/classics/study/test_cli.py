"""`dragoman study`, end to end, on models of four kinds of which three have hardly learned."""

import dataclasses
import re
from pathlib import Path

import pytest
import sacrebleu
from click.testing import CliRunner, Result

from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.classics.study.cli import study
from dragoman_training.classics.study.inputs import cut_buckets, read_study_set
from dragoman_training.cli import train
from dragoman_training.decoding.translator import Translator

OVERRIDES = {
    "plain": ["model={family='plain',embedding_size=24,layers=1,units=24}"],
    "local-p": [
        (
            "model={family='luong',embedding_size=24,encoder_layers=1,encoder_units=12,decoder_layers=1,"
            "decoder_units=24,attention='local-p',window=2}"
        )
    ],
    "transformer": [
        ("model={family='transformer',width=16,heads=2,feed_forward=24,encoder_layers=1,decoder_layers=2}")
    ],
}
COMMON = ["training.max_epochs=1", "training.validate_every_epochs=0.5"]


@pytest.fixture(scope="module")
def checkpoints(
    toy_folder: Path, toy_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A plain, a local-p model and a Transformer of an epoch, and the global one that learned the corpus."""
    folder = tmp_path_factory.mktemp("study")
    for name, overrides in OVERRIDES.items():
        options = [word for each in [*overrides, f"name={name}", *COMMON] for word in ("--set", each)]
        result = CliRunner().invoke(
            train, [str(toy_folder / "toy.toml"), "--out", str(folder / name), *options]
        )
        assert result.exit_code == 0, result.output
    found = {name: folder / name / "best.safetensors" for name in OVERRIDES}
    return {**found, "toy": toy_checkpoint}


def run(folder: Path, out: Path, *arguments: object) -> Result:
    """Two sentences are joined to one, so that there are enough of them for a column."""
    files = ["--source", folder / "test.de", "--reference", folder / "test.en", "--out", out]
    options = ["--beam", 2, "--join", 2, "--recipe-folder", folder]
    return CliRunner().invoke(study, [str(each) for each in [*options, *arguments, *files]])


def table_under(page: str, heading: str, number: int = 0) -> list[list[str]]:
    """The cells of the table of that number after a heading, header first."""
    _, _, rest = page.partition(f"# {heading}")
    rows = re.findall(r"(?:^\|.*\n)+", rest, re.M)[number]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows.splitlines()]
    return [cells[0], *cells[2:]]


def test_the_page_and_its_figures_hold_what_was_measured(
    checkpoints: dict[str, Path], toy_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "docs" / "research" / "attention.md"
    options = ["--sentences", "4,7", "--bucket-words", 3, "--bucket-sentences", 10]
    result = run(toy_folder, out, *checkpoints.values(), *options)
    assert result.exit_code == 0, result.output
    page = out.read_text()

    links = re.findall(r"!\[[^]]*\]\(([^)]*)\)", page)
    names = ["lengths.svg", "sentence-4.png", "sentence-7.png", "local-p.png", "training.svg"]
    assert links == [f"figures/attention-{name}" for name in names]
    assert all((out.parent / link).stat().st_size > 1000 for link in links)

    header, sentences, *models = table_under(page, "BLEU by length")
    assert len(header) > 3
    assert sum(int(cell.strip("*")) for cell in sentences[1:-2]) == 60
    assert (header[-2].split(", ")[1], sentences[-2]) == ("joined", "*30*")
    assert [row[0] for row in models] == ["`plain`", "`local-p`", "`transformer`", "`toy`"]
    longest = max(len(line.split()) for line in (toy_folder / "train.de").read_text().splitlines())
    assert f"none that the models were trained on more than {longest}." in page

    assert "BLEU of `toy`, the best recurrent model with attention" in page
    shares = table_under(page, "Does a fixed vector break down on long sentences?")
    assert [len(row) for row in shares] == [len(header) - 1] * 2
    assert shares[1][0] == "`plain`"
    assert (
        len(re.findall(r"^- `plain`, (?:among the test set's sentences|on to joined ones): ", page, re.M))
        == 2
    )

    looking = table_under(page, "Where they look")[1:]
    assert [row[0] for row in looking] == ["`local-p`", "`transformer`", "`toy`"]
    assert re.search(r"`transformer`: (head \d of decoder layer|no head has more)", page)
    assert [row[0] for row in table_under(page, "What local-p predicts")[1:]] == ["`local-p`"]
    (_, held_against) = table_under(page, "What local-p predicts", number=1)
    assert held_against[:2] == ["`local-p`", "`toy`"]
    # Which validation was the best depends on numbers; the page has those up to it.
    validations = [len(load_checkpoint(path).progress["validations"]) for path in checkpoints.values()]
    assert max(validations) >= 2
    assert [int(row[1]) for row in table_under(page, "Training curves")[1:]] == validations
    # The command on the page is the one that was given.
    command = page.split("```")[1]
    assert str(checkpoints["plain"]) in command
    assert "--sentences 4,7" in command
    assert "--join 2" in command
    assert "--device" not in command


def test_a_second_run_writes_the_same_bytes(
    checkpoints: dict[str, Path], toy_folder: Path, tmp_path: Path
) -> None:
    out, figures = tmp_path / "page.md", tmp_path / "figures"
    options = ["--bucket-sentences", 20]
    contents = []
    for _ in range(2):
        result = run(toy_folder, out, checkpoints["plain"], checkpoints["local-p"], *options)
        assert result.exit_code == 0, result.output
        contents.append({path.name: path.read_bytes() for path in [out, *figures.iterdir()]})
    assert len(contents[0]) == 7
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{toy}", "{toy}"], 'two models are called "toy"'),
        (["{toy}", "--sentences", "61"], "must be lines from 1 to 60"),
        (["{toy}", "--sentences", "one"], 'has "one", but must be lines'),
        (["{toy}", "--bucket-sentences", "61"], "to have 61 sentences, but there are only 60"),
        (["{toy}", "--join", "3"], "to have 30 sentences, but joined there are only 20: lower --join"),
        (["{toy}", "--device", "abacus"], 'there is no device "abacus"'),
        (["{folder}/toy.toml"], "is damaged or no checkpoint"),
    ],
)
def test_what_does_not_fit_is_named(
    arguments: list[str], message: str, toy_checkpoint: Path, toy_folder: Path, tmp_path: Path
) -> None:
    filled = [each.format(toy=toy_checkpoint, folder=toy_folder) for each in arguments]
    result = run(toy_folder, tmp_path / "page.md", *filled)
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_the_bleu_of_the_table_is_sacrebleus(toy_checkpoint: Path, toy_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    result = run(toy_folder, out, toy_checkpoint, "--bucket-words", 4, "--bucket-sentences", 5)
    assert result.exit_code == 0, result.output
    checkpoint = load_checkpoint(toy_checkpoint)
    decoding = dataclasses.replace(checkpoint.recipe.decoding, beam_size=2)
    translator = Translator(
        checkpoint.model, checkpoint.source_tokenizer, checkpoint.target_tokenizer, decoding
    )
    sources = (toy_folder / "test.de").read_text().splitlines()
    references = (toy_folder / "test.en").read_text().splitlines()
    translations = translator.translate(sources)
    page = out.read_text()
    # The joined sentences are not the test set.
    assert "\n60 sentences, " in page
    whole = sacrebleu.corpus_bleu(translations, [references]).score
    assert table_under(page, "What attention does")[1][3].split(" ± ")[0] == f"{whole:.1f}"
    _, _, (_, *cells, _, _) = table_under(page, "BLEU by length")
    test_set = read_study_set(toy_folder / "test.de", toy_folder / "test.en", None, join=1)
    buckets = cut_buckets(test_set, words=4, min_sentences=5)
    expected = [
        sacrebleu.corpus_bleu(
            [translations[number] for number in bucket.numbers],
            [[references[number] for number in bucket.numbers]],
        ).score
        for bucket in buckets
    ]
    assert [cell.split(" ± ")[0] for cell in cells] == [f"{bleu:.1f}" for bleu in expected]
