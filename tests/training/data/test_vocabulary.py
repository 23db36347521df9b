"""What a vocabulary is trained on, and what it keeps apart."""

import pytest
from tests.training.toy_pairs import SOURCES, TARGETS

from dragoman_training.data.corpus import Corpus
from dragoman_training.data.vocabulary import train_tokenizers
from dragoman_training.recipe.data import VocabularyConfig


@pytest.mark.parametrize(
    ("normalization", "back"), [("nmt_nfkc", "10 m2 (1 2)!"), ("identity", "10 m² （１ ２）！")]
)
def test_like_characters_are_written_alike_unless_they_are_kept_apart(normalization: str, back: str) -> None:
    text = "10 m² （１ ２）！"
    corpus = Corpus([*SOURCES, text, back], [*TARGETS, text, back])
    config = VocabularyConfig(size=62, normalization=normalization)  # type: ignore[arg-type]
    tokenizer, _ = train_tokenizers(corpus, config)
    assert tokenizer.decode(tokenizer.encode_ids([text])[0]).text == back


def test_long_lines_are_learnt_from_too() -> None:
    # Sentencepiece by itself leaves out lines of more than 4,192 bytes.
    corpus = Corpus([*SOURCES, "ß" * 3000], [*TARGETS, "x"])
    tokenizer, _ = train_tokenizers(corpus, VocabularyConfig(size=60))
    assert tokenizer.unk_id not in tokenizer.encode_ids(["ß"])[0]


def test_a_tag_is_a_piece_of_its_own_that_no_other_text_gives() -> None:
    tags = ("\ue000", "\ue001")
    tokenizer, _ = train_tokenizers(Corpus(SOURCES, TARGETS), VocabularyConfig(size=55, tags=tags))
    ids = [tokenizer.id_of(tag) for tag in tags]
    assert None not in ids
    tagged, plain = tokenizer.encode_ids([f"{tags[0]} {SOURCES[0]}", SOURCES[0]])
    assert [id_ for id_ in tagged if id_ in ids] == [ids[0]]
    assert tagged[-len(plain) :] == plain
    assert not set(ids) & set(plain)


def test_a_tag_that_people_write_is_refused() -> None:
    with pytest.raises(ValueError, match=r"vocabulary\.tags has '<formal>'"):
        VocabularyConfig(tags=("<formal>",))
