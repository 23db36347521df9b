"""Tables over tokens: learnt from the tokens, or counted from the links of a saved aligner; their rows."""

import numpy as np
import pytest
from tests.export.toy_checkpoint import train_tokenizer

from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.bitext import WordRule
from dragoman_training.alignment.pieces import TranslationTable, count_links, learn_table
from dragoman_training.alignment.training import TrainingOptions, train_aligner
from dragoman_training.data.corpus import Corpus


def make_table() -> TranslationTable:
    source, target = np.array([(0, 3), (2, 1), (0, 1), (0, 2), (0, 4), (2, 0)], np.int32).T
    probability = np.array([0.2, 0.5, 0.7, 0.05, 0.05, 0.5])
    return TranslationTable.from_pairs(source, target, probability, source_vocabulary=2)


def test_rows_have_the_likeliest_first_and_of_equals_the_lower_id() -> None:
    table = make_table()
    assert list(table.row(0).items()) == [(1, 0.7), (3, 0.2), (2, 0.05), (4, 0.05)]
    assert table.row(1) == {}
    assert table.null == 2
    assert list(table.row(2)) == [0, 1]


def test_pruning_keeps_the_likeliest_that_are_likely_enough() -> None:
    table = make_table().prune(max_targets=3, min_probability=0.0)
    assert [list(table.row(source)) for source in range(3)] == [[1, 3, 2], [], [0, 1]]
    table = make_table().prune(max_targets=3, min_probability=0.2)
    assert [list(table.row(source)) for source in range(3)] == [[1, 3], [], [0, 1]]


SOURCES = ["ab cd", "ab", "cd", "ef", "ab ef"] * 8
TARGETS = ["BA DC", "BA", "DC", "FE", "FE BA"] * 8


def random_pairs(seed: int) -> list[tuple[list[int], list[int]]]:
    """Token ids whose targets mostly follow from their sources."""
    generator = np.random.default_rng(seed)
    sources = [generator.integers(0, 12, generator.integers(1, 9)).tolist() for _ in range(60)]

    def translated(token: int) -> int:
        return token % 7 if generator.random() < 0.7 else int(generator.integers(0, 7))

    return [(source, [translated(token) for token in source]) for source in sources]


def aligner(sources: list[str] = SOURCES, targets: list[str] = TARGETS) -> Aligner:
    rule = WordRule(tokenize=True)
    pairs = zip(map(rule.normalize, sources), map(rule.normalize, targets), strict=True)
    return train_aligner(list(pairs), TrainingOptions(model="hmm", spelling=0), rule)


def test_the_translation_of_a_token_is_among_its_likeliest() -> None:
    table = learn_table(random_pairs(2), source_vocabulary=20)
    for source in range(12):
        assert source % 7 in list(table.row(source))[:2]
    assert table.null == 20
    # What was never seen has no targets.
    assert table.row(15) == {}


def test_what_a_token_gives_sums_up_to_one_but_for_what_is_hardly_possible() -> None:
    table = learn_table(random_pairs(1), source_vocabulary=12)
    for source in [*range(12), table.null]:
        assert sum(table.row(source).values()) == pytest.approx(1, abs=0.02)


def test_links_of_words_are_counted_for_all_of_their_tokens() -> None:
    tokenizer = train_tokenizer(40)
    table = count_links(aligner(), Corpus(SOURCES, TARGETS), tokenizer, tokenizer, max_tokens=60)

    def targets_of(word: str) -> set[str]:
        found: set[str] = set()
        # A space alone is of every word.
        for token in set(tokenizer.encode_ids([word])[0]) - {tokenizer.id_of("▁")}:
            found |= {tokenizer.piece(id_) for id_, share in table.row(token).items() if share > 0.1}
        return {piece.strip("▁") for piece in found} - {""}

    assert targets_of("ab") == {"B", "A"} or targets_of("ab") == {"BA"}
    assert targets_of("cd") == {"D", "C"} or targets_of("cd") == {"DC"}
    for token in {token for ids in tokenizer.encode_ids(SOURCES) for token in ids}:
        assert sum(table.row(token).values()) == pytest.approx(1)


def test_the_case_of_the_text_is_kept_where_the_aligner_knows_none() -> None:
    """An aligner of words in lower case links "BA", and the table has the tokens of "BA", not of "ba"."""
    tokenizer = train_tokenizer(40)
    table = count_links(aligner(), Corpus(["ab"], ["BA"]), tokenizer, tokenizer, max_tokens=60)
    upper = {token for ids in tokenizer.encode_ids(["BA"]) for token in ids}
    assert {int(token) for token in table.target_P} <= upper


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train_tokenizer(40)
    made = aligner()

    def count() -> TranslationTable:
        return count_links(made, Corpus(SOURCES, TARGETS), tokenizer, tokenizer, max_tokens=60)

    whole = count()
    monkeypatch.setattr("dragoman_training.alignment.pieces.BLOCK_PAIRS", 7)
    parts = count()
    np.testing.assert_array_equal(parts.first_V, whole.first_V)
    for token in range(tokenizer.vocabulary_size):
        assert parts.row(token) == pytest.approx(whole.row(token))


def test_longer_pairs_are_left_out() -> None:
    tokenizer = train_tokenizer(40)
    corpus = Corpus(["ab", "cd cd cd cd"], ["BA", "DC DC DC DC"])
    table = count_links(aligner(), corpus, tokenizer, tokenizer, max_tokens=4)
    seen = {token for ids in tokenizer.encode_ids(["BA"]) for token in ids}
    assert {int(token) for token in table.target_P} <= seen


def test_an_aligner_of_the_other_direction_is_refused() -> None:
    tokenizer = train_tokenizer(40)
    with pytest.raises(ValueError, match="train one of the model's direction"):
        count_links(aligner(TARGETS, SOURCES), Corpus(SOURCES, TARGETS), tokenizer, tokenizer, max_tokens=60)
