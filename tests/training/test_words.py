"""`dragoman words`: which pieces are alike."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.training.toy_pairs import toy_tokenizer

from dragoman_training.words import nearest, piece_of, words


def test_the_nearest_is_the_one_with_the_largest_cosine_and_not_the_word_itself() -> None:
    tokenizer = toy_tokenizer()
    size = tokenizer.vocabulary_size
    embedding_VD = np.zeros((size, 3), np.float32)
    embedding_VD[10], embedding_VD[11], embedding_VD[12] = (1, 0, 0), (9, 1, 0), (1, 1, 0)
    found = nearest(embedding_VD, tokenizer, [10], [], number=2)
    assert [each.piece for each in found] == [tokenizer.piece(11), tokenizer.piece(12)]
    assert found[1].cosine == pytest.approx(2**-0.5)


def test_what_is_taken_away_leads_to_the_analogy() -> None:
    """king - man + woman: each direction is one axis."""
    tokenizer = toy_tokenizer()
    embedding_VD = np.zeros((tokenizer.vocabulary_size, 3), np.float32)
    man, woman, king, queen = 10, 11, 12, 13
    embedding_VD[man], embedding_VD[woman] = (1, 0, 0), (0, 1, 0)
    embedding_VD[king], embedding_VD[queen] = (1, 0, 1), (0, 1, 1)
    (best,) = nearest(embedding_VD, tokenizer, [king, woman], [man], number=1)
    assert best.piece == tokenizer.piece(queen)


def test_special_pieces_are_no_neighbours() -> None:
    tokenizer = toy_tokenizer()
    embedding_VD = np.ones((tokenizer.vocabulary_size, 3), np.float32)
    found = nearest(embedding_VD, tokenizer, [10], [], number=1000)
    special = {tokenizer.piece(id_) for id_ in (tokenizer.eos_id, tokenizer.unk_id, tokenizer.bos_id)}
    assert len(found) < tokenizer.vocabulary_size - len(special)
    assert not special & {each.piece for each in found}


def test_a_word_of_several_pieces_is_refused_with_its_pieces() -> None:
    with pytest.raises(ValueError, match="is no piece of the vocabulary, which writes it as"):
        piece_of("hundvogelfisch", toy_tokenizer())


def test_the_command_shows_as_many_as_are_asked_for(toy_checkpoint: Path) -> None:
    from dragoman_training.checkpoint import load_checkpoint

    tokenizer = load_checkpoint(toy_checkpoint).target_tokenizer
    word = next(
        piece[1:]
        for id_ in range(tokenizer.vocabulary_size)
        if (piece := tokenizer.piece(id_)).startswith("▁") and piece[1:].isalpha()
        if tokenizer.encode_ids([piece[1:]])[0] == [id_]
    )
    result = CliRunner().invoke(words, [str(toy_checkpoint), word, "--number", "3"])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 3
