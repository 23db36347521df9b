"""`dragoman words`: which pieces of a model are alike, and which words of a text."""

from pathlib import Path

import numpy as np
import pytest
from tests.training.toy_pairs import invoke, toy_tokenizer

from dragoman_training.classics.words import Answer, Space, draw_panel, open_pieces, open_vectors, piece_of
from dragoman_training.classics.words_cli import words


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
    from matplotlib.figure import Figure

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
    code, said = run(toy_checkpoint, word_of(toy_checkpoint), "--number", 3)
    assert (code, len(said.splitlines())) == (0, 3)


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
def vectors(tmp_path: Path, toy_checkpoint: Path) -> Path:
    """Of the model's word and two more, as word2vec writes them."""
    path = tmp_path / "vectors"
    path.write_text(f"3 2\n{word_of(toy_checkpoint)} 0.5 1e-2 \nKatze 0 -3\nNew York 1 0.1\n", "utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    result = invoke(words, *arguments)
    return result.exit_code, result.output + str(result.exception or "")


def test_others_vectors_stand_beside_the_models_and_are_drawn(
    vectors: Path, toy_checkpoint: Path, tmp_path: Path
) -> None:
    pictures = [tmp_path / "one.svg", tmp_path / "other.svg"]
    arguments = toy_checkpoint, word_of(toy_checkpoint), "--number", 2, "--vectors", vectors
    for picture in pictures:
        code, said = run(*arguments, "--picture", picture)
        assert code == 0, said
    lines = said.splitlines()
    assert lines[0].startswith("embeddings of")
    # The cosines are those of the three lines.
    assert lines[3:] == ["vectors", " 0.997  New York", "-0.020  Katze"]
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert pictures[0].read_text().count('<g id="axes_') == 2


def test_a_word_that_one_space_lacks_is_asked_of_the_other(vectors: Path, toy_checkpoint: Path) -> None:
    code, said = run(toy_checkpoint, "Katze", "--vectors", vectors)
    assert code == 0, said
    assert "'Katze' is no piece" in said
    assert "New York" in said


@pytest.mark.parametrize("content", ["", "a b\n", "2 2\na 1 2\n", "1 2\na 1\n", "1 2\na 1 x\n"])
def test_what_holds_no_vectors_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_text(content)
    with pytest.raises(ValueError, match="holds no vectors in word2vec's text format"):
        open_vectors(path)
