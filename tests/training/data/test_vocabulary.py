"""What a vocabulary keeps apart, and segmentations that are drawn: by the seed, of the same text."""

import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from sentencepiece import SentencePieceProcessor
from tests.training.toy_pairs import SOURCES, TARGETS, toy_corpus

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.vocabulary import SubwordSampler, make_samplers, train_tokenizers
from dragoman_training.recipe.data import SubwordSamplingConfig, VocabularyConfig


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


ModelType = Literal["unigram", "bpe"]
KINDS: list[tuple[ModelType, int]] = [("unigram", -1), ("unigram", 8), ("bpe", -1)]
ODD_TEXTS = ["der ☃☃ hund", "☃", "x ☃ 漢字 ein", "a▁b", "</s>", ""]
"""With characters that the vocabulary lacks, in a row and alone."""
NUM_DRAWS = 10_000
TOLERANCE = 0.02
"""Four standard deviations of a share of a half."""
IN_A_PROCESS = """
import random, sys
from pathlib import Path
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_training.data.vocabulary import make_samplers
from dragoman_training.recipe.data import SubwordSamplingConfig

tokenizer = Tokenizer(Path(sys.argv[1]).read_bytes())
config = SubwordSamplingConfig(source=True, nbest_size=int(sys.argv[3]))
sampler = make_samplers((tokenizer, tokenizer), config, sys.argv[2])[0]
generator = random.Random(int(sys.argv[4]))
print([sampler.sample("ein alter mann sieht den hund.", generator) for _ in range(20)])
"""


def tokenizer_of(model_type: ModelType) -> Tokenizer:
    return train_tokenizers(toy_corpus(), VocabularyConfig(size=55, model_type=model_type))[0]


def sampler_of(
    tokenizer: Tokenizer, model_type: ModelType, *, alpha: float, nbest_size: int = -1
) -> SubwordSampler:
    config = SubwordSamplingConfig(source=True, alpha=alpha, nbest_size=nbest_size)
    sampler, _ = make_samplers((tokenizer, tokenizer), config, model_type)
    assert sampler
    return sampler


@pytest.mark.parametrize(("model_type", "nbest_size"), KINDS[1:])
def test_every_process_draws_the_same_by_the_same_seed(
    tmp_path: Path, model_type: ModelType, nbest_size: int
) -> None:
    tokenizer = tokenizer_of(model_type)
    (tmp_path / "toy.spm").write_bytes(tokenizer.model)
    arguments = [str(tmp_path / "toy.spm"), model_type, str(nbest_size), "5"]
    there = subprocess.check_output([sys.executable, "-c", IN_A_PROCESS, *arguments], text=True)
    sampler = sampler_of(tokenizer, model_type, alpha=SubwordSamplingConfig.alpha, nbest_size=nbest_size)

    def drawn(seed: int) -> str:
        generator = random.Random(seed)
        return f"{[sampler.sample('ein alter mann sieht den hund.', generator) for _ in range(20)]}\n"

    assert there == drawn(5) != drawn(6)


@pytest.mark.parametrize(("model_type", "nbest_size"), KINDS)
def test_whatever_is_drawn_decodes_to_what_the_best_does(model_type: ModelType, nbest_size: int) -> None:
    tokenizer = tokenizer_of(model_type)
    sampler = sampler_of(tokenizer, model_type, alpha=0.2, nbest_size=nbest_size)
    generator = random.Random(1)
    for text in [*toy_corpus().sources, *ODD_TEXTS]:
        best = tokenizer.encode(text).ids
        drawn = [sampler.sample(text, generator) for _ in range(10)]
        assert {tokenizer.decode(ids).text for ids in drawn} == {tokenizer.decode(best).text}
        assert {ids.count(tokenizer.unk_id) for ids in drawn} == {best.count(tokenizer.unk_id)}


@pytest.mark.parametrize(("model_type", "nbest_size"), KINDS)
def test_where_nothing_else_can_be_drawn_it_is_the_best(model_type: ModelType, nbest_size: int) -> None:
    tokenizer = tokenizer_of(model_type)
    sharp = 0.0 if model_type == "bpe" else 1e6
    sampler = sampler_of(tokenizer, model_type, alpha=sharp, nbest_size=nbest_size)
    for text in [*toy_corpus().targets, *ODD_TEXTS]:
        assert sampler.sample(text, random.Random(1)) == tokenizer.encode(text).ids


def tiny_tokenizer(model_type: ModelType) -> Tokenizer:
    """Of a dozen pieces, so that all segmentations of a text can be written down."""
    corpus = Corpus([], ["abab abb ba", "bab aab ab", "aabab bba"] * 20)
    config = VocabularyConfig(size=12, shared=True, model_type=model_type)
    return train_tokenizers(corpus, config)[0]


def scores(tokenizer: Tokenizer) -> dict[str, float]:
    processor = SentencePieceProcessor(model_proto=tokenizer.model)
    return {processor.id_to_piece(id_): processor.get_score(id_) for id_ in range(4, 12)}


def shares(tokenizer: Tokenizer, sampler: SubwordSampler, text: str) -> dict[tuple[str, ...], float]:
    """How often each segmentation is drawn."""
    generator = random.Random(1)
    drawn = Counter(tuple(map(tokenizer.piece, sampler.sample(text, generator))) for _ in range(NUM_DRAWS))
    return {pieces: number / NUM_DRAWS for pieces, number in drawn.items()}


@pytest.mark.parametrize(("nbest_size", "alpha"), [(-1, 0.5), (-1, 0.0), (4, 0.5), (4, 0.0)])
def test_unigram_segmentations_are_drawn_by_their_probability(nbest_size: int, alpha: float) -> None:
    tokenizer = tiny_tokenizer("unigram")
    score_of = scores(tokenizer)

    def segmentations(text: str) -> Iterator[tuple[tuple[str, ...], float]]:
        if not text:
            yield (), 0.0
        for piece, score in score_of.items():
            if text.startswith(piece):
                for rest, rest_score in segmentations(text.removeprefix(piece)):
                    yield (piece, *rest), score + rest_score

    every = sorted(segmentations("▁aab▁ab"), key=lambda each: -each[1])
    assert len(every) == 9
    if nbest_size > 0:
        del every[nbest_size:]
    weights = [math.exp(alpha * score) for _, score in every]
    expected = {pieces: weight / sum(weights) for (pieces, _), weight in zip(every, weights, strict=True)}
    sampler = sampler_of(tokenizer, "unigram", alpha=alpha, nbest_size=nbest_size)
    assert shares(tokenizer, sampler, "aab ab") == pytest.approx(expected, abs=TOLERANCE)


def test_bpe_segmentations_are_drawn_by_the_merges_left_out() -> None:
    tokenizer = tiny_tokenizer("bpe")
    score_of, dropout = scores(tokenizer), 0.4
    expected: dict[tuple[str, ...], float] = Counter()

    def merge(pieces: tuple[str, ...], probability: float) -> None:
        pairs = [(left + right, place) for place, (left, right) in enumerate(pairwise(pieces))]
        merges = sorted((pair for pair in pairs if pair[0] in score_of), key=lambda pair: -score_of[pair[0]])
        for merged, place in merges:
            merge((*pieces[:place], merged, *pieces[place + 2 :]), probability * (1 - dropout))
            probability *= dropout
        expected[pieces] += probability

    merge(tuple("▁aab"), 1.0)
    assert len(expected) > 4
    sampler = sampler_of(tokenizer, "bpe", alpha=dropout)
    assert shares(tokenizer, sampler, "aab") == pytest.approx(expected, abs=TOLERANCE)


BOTH = SubwordSamplingConfig(source=True, target=True)


def sides(pairs: Pairs) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of all sources and targets, without special ones."""
    batch = pairs.batch(range(len(pairs)))
    return tuple(  # type: ignore[return-value]
        [[id_ for id_ in row if id_ > 3] for row in tensor.tolist()]
        for tensor in (batch.source_ST, batch.target_output_SU)
    )


def segmented(
    tokenizer: Tokenizer, sampling: SubwordSamplingConfig, *seeds: int, max_tokens: int | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """What is drawn with the last seed, after the others."""
    samplers = make_samplers((tokenizer, tokenizer), sampling, "unigram")
    pairs = Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=max_tokens, samplers=samplers)
    for seed in seeds:
        pairs.segment(seed)
    return sides(pairs)


@pytest.mark.parametrize("side", [0, 1])
def test_only_the_side_that_is_asked_for_is_sampled(tokenizer: Tokenizer, side: int) -> None:
    plain = segmented(tokenizer, SubwordSamplingConfig(), 1)
    one = segmented(tokenizer, SubwordSamplingConfig(source=side == 0, target=side == 1), 1)
    assert one[side] != plain[side]
    assert one[1 - side] == plain[1 - side]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_segmentation_that_is_too_long_gives_way_to_the_best(tokenizer: Tokenizer, seed: int) -> None:
    best, drawn = segmented(tokenizer, SubwordSamplingConfig(), 1), segmented(tokenizer, BOTH, seed)
    limit = max(len(ids) for side in best for ids in side)
    expected = tuple(
        [ids if len(ids) <= limit else own for ids, own in zip(*each, strict=True)]
        for each in zip(drawn, best, strict=True)
    )
    assert segmented(tokenizer, BOTH, 3, seed, max_tokens=limit) == expected
    assert expected not in (best, drawn)
