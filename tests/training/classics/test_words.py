"""`dragoman words`: which pieces of a model are alike, and which words of a text."""

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from tests.training.toy_pairs import toy_tokenizer

from dragoman_training.classics.words import (
    Answer,
    SkipGramOptions,
    Space,
    draw_panel,
    open_pieces,
    open_vectors,
    piece_of,
    train_vectors,
)
from dragoman_training.classics.words_cli import words

NEEDS_GENSIM = "needs the extra dragoman[vectors], which is too large for dragoman[dev]"


def space_of(vector_VD: np.ndarray) -> Space:
    names = [f"word{row}" for row in range(len(vector_VD))]
    return Space(title="toy", vector_VD=vector_VD.astype(np.float32), words=names, row_of=names.index)


def test_the_nearest_is_the_one_with_the_largest_cosine_and_not_the_word_itself() -> None:
    space = space_of(np.array([(0, 0, 0), (1, 0, 0), (9, 1, 0), (1, 1, 0)]))
    found = space.nearest([1], [], number=2)
    assert [each.word for each in found] == ["word2", "word3"]
    assert found[1].cosine == pytest.approx(2**-0.5)


def test_what_is_taken_away_leads_to_the_analogy() -> None:
    """king - man + woman: each direction is one axis."""
    space = space_of(np.array([(0, 1, 1), (1, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 0)]))
    queen, man, woman, king = 0, 1, 2, 3
    (best,) = space.nearest([king, woman], [man], number=1)
    assert best.row == queen
    # An arrow goes from the word taken away to one of the others, and from the other one to the answer.
    axes = Figure().subplots()
    draw_panel(axes, Answer(space=space, plus=[king, woman], minus=[man], neighbours=[best]))
    points = [tuple(line.get_xydata()[0]) for line in axes.lines]
    arrows = [each for each in axes.texts if each.arrow_patch is not None]
    ends = [(points.index(tuple(each.xyann)), points.index(tuple(each.xy))) for each in arrows]
    # In the order that they are drawn: king, woman, man, queen.
    assert ends == [(2, 1), (0, 3)]


def test_special_pieces_are_no_neighbours(toy_checkpoint: Path) -> None:
    space = open_pieces(toy_checkpoint)
    rows = {each.row for each in space.nearest([10], [], number=1000)}
    special = {space.words.index(word) for word in ("<s>", "</s>", "<unk>")}
    assert rows == set(range(len(space.words))) - special - {10, *space.no_words}


def test_a_word_of_several_pieces_is_refused_with_its_pieces() -> None:
    with pytest.raises(ValueError, match="is no piece of the vocabulary, which writes it as"):
        piece_of("hundvogelfisch", toy_tokenizer())


def test_the_command_shows_as_many_as_are_asked_for(toy_checkpoint: Path) -> None:
    result = CliRunner().invoke(words, [str(toy_checkpoint), word_of(toy_checkpoint), "--number", "3"])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 3


def word_of(checkpoint: Path) -> str:
    """A word that is one piece."""
    from dragoman_training.checkpoint import load_checkpoint

    tokenizer = load_checkpoint(checkpoint).target_tokenizer
    return next(
        piece[1:]
        for id_ in range(tokenizer.vocabulary_size)
        if (piece := tokenizer.piece(id_)).startswith("▁") and piece[1:].isalpha()
        if tokenizer.encode_ids([piece[1:]])[0] == [id_]
    )


@pytest.fixture
def text(tmp_path: Path, toy_checkpoint: Path) -> Path:
    """Two words stand among the same others; the model's word among different ones."""
    random = np.random.default_rng(1)
    around = {"Hund": "fgh", "Katze": "fgh", word_of(toy_checkpoint): "xyz"}
    lines = [
        " ".join([*random.choice(list(others), 2), word, *random.choice(list(others), 2)])
        for _ in range(300)
        for word, others in around.items()
    ]
    path = tmp_path / "text"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(words, [str(argument) for argument in arguments])
    return result.exit_code, result.output + str(result.exception or "")


def test_words_of_like_surroundings_have_like_vectors(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason=NEEDS_GENSIM)
    # In so small a text every word is frequent.
    options = SkipGramOptions(width=10, window=2, frequent=0, epochs=10)
    train_vectors([text], tmp_path / "vectors", options, lambda epoch: None)
    space = open_vectors(tmp_path / "vectors")
    (best,) = space.nearest([space.row_of("Hund")], [], number=1)
    assert best.word == "Katze"


def test_the_same_text_gives_the_same_vectors_and_no_file_is_overwritten(
    text: Path, toy_checkpoint: Path, tmp_path: Path
) -> None:
    pytest.importorskip("gensim", reason=NEEDS_GENSIM)
    trained = []
    for name in ("one", "other"):
        vectors = tmp_path / name
        code, said = run(toy_checkpoint, "Hund", "--number", 1, "--vectors", vectors, "--text", text)
        assert code == 0, said
        assert "epoch 5 of 5" in said
        # The model knows no such word, and says so beside the answer.
        assert "'Hund' is no piece" in said
        trained.append(vectors.read_bytes())
    assert trained[0] == trained[1]
    code, said = run(toy_checkpoint, "Hund", "--vectors", vectors, "--text", text)
    assert code == 1
    assert "exists" in said
    assert vectors.read_bytes() == trained[0]


def test_saved_vectors_stand_beside_the_models_and_are_drawn(
    text: Path, toy_checkpoint: Path, tmp_path: Path
) -> None:
    pytest.importorskip("gensim", reason=NEEDS_GENSIM)
    vectors, word = tmp_path / "vectors", word_of(toy_checkpoint)
    assert run(toy_checkpoint, word, "--vectors", vectors, "--text", text)[0] == 0
    pictures = [tmp_path / "one.svg", tmp_path / "other.svg"]
    for picture in pictures:
        code, said = run(toy_checkpoint, word, "--number", 2, "--vectors", vectors, "--picture", picture)
        assert code == 0, said
    lines = said.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("embeddings of")
    assert lines[3] == "skip-gram, vectors"
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert pictures[0].read_text().count('<g id="axes_') == 2


def test_without_gensim_the_extra_is_named(
    toy_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    code, output = run(toy_checkpoint, "Hund", "--vectors", tmp_path / "vectors")
    assert code == 1
    assert "install the extra `vectors`" in output
