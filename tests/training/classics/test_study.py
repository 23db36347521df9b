"""`dragoman study`, end to end, on models of four kinds of which three have hardly learned."""

import dataclasses
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from tests.export.toy_checkpoint import save
from tests.training.toy_pairs import DATA, SOURCES, TARGETS, invoke, run_training, toy_model, toy_tokenizer

from dragoman_training.alignment.head import ChosenHead, look_through
from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.classics.study import Findings, StudySet, cut_buckets, examine, read_study_set
from dragoman_training.classics.study_cli import study
from dragoman_training.decoding.translator import Translator
from dragoman_training.models.transformer import AlignmentHead, Transformer, TransformerConfig
from dragoman_training.recipe.settings import DecodingConfig, Recipe

OVERRIDES = {
    "plain": "model={family='plain',embedding_size=24,layers=1,units=24}",
    "local-p": (
        "model={family='luong',embedding_size=24,encoder_layers=1,encoder_units=12,decoder_layers=1,"
        "decoder_units=24,attention='local-p',window=2}"
    ),
    "transformer": (
        "model={family='transformer',width=16,heads=2,feed_forward=24,encoder_layers=1,decoder_layers=2}"
    ),
}
COMMON = ["training.max_epochs=1", "training.batch_tokens=1200", "training.validate_every_epochs=0.5"]


@pytest.fixture(scope="module")
def checkpoints(
    toy_folder: Path, toy_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A plain, a local-p model and a Transformer of an epoch, and the global one that learned the corpus."""
    folder = tmp_path_factory.mktemp("study")
    for name, overrides in OVERRIDES.items():
        options = ["--out", folder / name, "--set", overrides, f"name={name}", *COMMON]
        run_training(toy_folder / "toy.toml", *options)
    found = {name: folder / name / "best.safetensors" for name in OVERRIDES}
    return {**found, "toy": toy_checkpoint}


def run(folder: Path, out: Path, *arguments: object) -> Result:
    files = ["--source", folder / "test.de", "--reference", folder / "test.en", "--out", out]
    options = ["--beam", 2, "--recipe-folder", folder]
    return invoke(study, *options, *arguments, *files)


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
    result = run(toy_folder, out, *checkpoints.values(), "--sentences", "4,7")
    assert result.exit_code == 0, result.output
    page = out.read_text()

    links = re.findall(r"!\[[^]]*\]\(([^)]*)\)", page)
    names = ["lengths.svg", "sentence-4.png", "sentence-7.png", "local-p.png", "training.svg"]
    assert links == [f"figures/attention-{name}" for name in names]
    assert all((out.parent / link).stat().st_size > 1000 for link in links)

    header, sentences, *models = table_under(page, "What attention does")
    assert sum(int(cell.strip("*")) for cell in sentences[4:-1]) == 60
    assert (header[-1].split(", ")[1], sentences[-1]) == ("joined words", "*15*")
    names = ["`plain`", "`local-p`", "`transformer`", "`toy`"]
    assert [row[0] for row in models] == names
    assert [row[1] for row in models] == ["plain", "luong", "transformer", "luong"]
    assert [row[0] for row in table_under(page, "Where they look")[1:]] == names[1:]
    assert re.search(r"`transformer`: (head \d of decoder layer|no head has more)", page)
    # Which validation was the best depends on numbers; the page has those up to it.
    validations = [len(load_checkpoint(path).progress["validations"]) for path in checkpoints.values()]
    assert max(validations) >= 2
    assert [int(row[1]) for row in table_under(page, "Training curves")[1:]] == validations


def test_a_second_run_writes_the_same_bytes(
    checkpoints: dict[str, Path], toy_folder: Path, tmp_path: Path
) -> None:
    out, figures = tmp_path / "page.md", tmp_path / "figures"
    contents = []
    for _ in range(2):
        result = run(toy_folder, out, checkpoints["plain"], checkpoints["local-p"])
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
    result = run(toy_folder, out, toy_checkpoint)
    assert result.exit_code == 0, result.output
    checkpoint = load_checkpoint(toy_checkpoint)
    decoding = dataclasses.replace(checkpoint.recipe.decoding, beam_size=2)
    tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
    sources, references = ((toy_folder / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    translations = Translator(checkpoint.model, *tokenizers, decoding).translate(sources)
    page = out.read_text()
    # The joined sentences are not the test set.
    assert "\n60 sentences, " in page
    test_set = read_study_set(toy_folder / "test.de", toy_folder / "test.en", None)
    *buckets, _ = cut_buckets(test_set)
    _, _, (_, _, _, *cells, _) = table_under(page, "What attention does")
    for numbers, cell in zip((test_set.own, *(bucket.numbers for bucket in buckets)), cells, strict=True):
        found, expected = ([lines[number] for number in numbers] for lines in (translations, references))
        assert cell == f"{sacrebleu.corpus_bleu(found, [expected]).score:.1f}"


CONFIG = TransformerConfig(width=12, heads=3, feed_forward=20, encoder_layers=1, decoder_layers=2)
SET = StudySet(
    sources=(*SOURCES[:3], ", ".join(SOURCES[:3])),
    references=(*TARGETS[:3], ", ".join(TARGETS[:3])),
    num_sentences=3,
    examples=(0, 2),
)


def write_transformer(folder: Path, decoding: DecodingConfig | None = None) -> Path:
    """A checkpoint with random weights, beside the corpus that it says it was trained on."""
    torch.manual_seed(2)
    tokenizer = toy_tokenizer()
    model = toy_model(CONFIG, tokenizer)
    for side, lines in (("de", SOURCES), ("en", TARGETS)):
        (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    recipe = Recipe(name="toy", data=DATA, model=CONFIG, decoding=decoding or DecodingConfig())
    tokenizers = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    checkpoint = Checkpoint(recipe=recipe, model=model, progress={"validations": []}, **tokenizers)
    return save(checkpoint, folder / "best.safetensors")


def examined(path: Path, recipe_folder: Path) -> Findings:
    return examine(
        "transformer",
        path,
        SET,
        beam_size=2,
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
    monkeypatch.setattr("dragoman_training.classics.study.choose_head", lambda *_, **__: chosen)
    path = write_transformer(tmp_path)
    found = examined(path, tmp_path)
    model, tokenizer = load_checkpoint(path).model, toy_tokenizer()
    assert isinstance(model, Transformer)
    for number, example in zip(SET.examples, found.examples, strict=True):
        said = [*found.tokens[number], tokenizer.eos_id]
        assert len(said) > 2
        source = [*tokenizer.encode_ids([SET.sources[number]])[0], tokenizer.eos_id]
        (look_LHUT,) = look_through(model, (tokenizer, tokenizer), [(source, said)])
        # Which a token's weights are: of the step that predicts it, or of the one after, that reads it.
        rows = look_LHUT[head.layer, head.head, int(of_input) :]
        assert np.allclose(example.attention.weights_UT, rows, atol=1e-5)
        pieces = [tokenizer.piece(token) for token in said]
        assert list(example.target_pieces) == (pieces[:-1] if of_input else pieces)


def test_long_sentences_are_neither_cut_nor_their_translations(tmp_path: Path) -> None:
    short = DecodingConfig(max_source_tokens=8, max_output_tokens=6)
    tokens = examined(write_transformer(tmp_path, short), tmp_path).tokens
    assert tokens == examined(write_transformer(tmp_path), tmp_path).tokens
    assert max(map(len, tokens)) > 6


SENTENCES = ["Ein Mann geht.", "Zwei Hunde laufen .", "Was ruft?", "Die Frau singt.", "Nie!"]


def test_joined_sentences_stand_behind_the_test_sets_own_in_a_bucket_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "test.de"
    path.write_text("".join(f"{line}\n" for line in SENTENCES))
    test_set = read_study_set(path, path, None)
    assert test_set.sources == test_set.references
    assert test_set.sources[:5] == tuple(SENTENCES)
    assert test_set.sources[5:] == ("Ein Mann geht, zwei Hunde laufen, was ruft, die Frau singt.",)
    own, joined = cut_buckets(test_set)
    assert (own.label, list(own.numbers)) == ("1 to 4", [0, 1, 2, 3, 4])
    assert (joined.label, list(joined.numbers)) == ("11, joined", [5])


@given(st.lists(st.integers(1, 60), min_size=1, max_size=200))
def test_every_sentence_is_in_one_bucket_and_no_bucket_is_too_small(lengths: list[int]) -> None:
    sources = tuple(" ".join(["wort"] * length) for length in lengths)
    test_set = StudySet(sources=sources, references=sources, num_sentences=len(sources), examples=())
    buckets = cut_buckets(test_set)
    assert sorted(number for bucket in buckets for number in bucket.numbers) == list(range(len(sources)))
    assert len(buckets) == 1 or all(len(bucket.numbers) >= 30 for bucket in buckets)
    cut = [[lengths[number] for number in bucket.numbers] for bucket in buckets]
    assert all(max(one) < min(other) for one, other in pairwise(cut))
