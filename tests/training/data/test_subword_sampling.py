"""Sampled segmentations: other ones each epoch, the same text, and all of it by seed."""

from typing import Any, Literal

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.training.toy_pairs import toy_corpus, toy_tokenizer

from dragoman_training.data.batching import Pairs
from dragoman_training.data.vocabulary import make_samplers
from dragoman_training.recipe.data import SubwordSamplingConfig

BOTH = SubwordSamplingConfig(source=True, target=True)


def sides(pairs: Pairs) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of all sources and targets, without special ones."""
    batch = pairs.batch(range(len(pairs)))
    return tuple(  # type: ignore[return-value]
        [[id_ for id_ in row if id_ > 3] for row in tensor.tolist()]
        for tensor in (batch.source_ST, batch.target_output_SU)
    )


def sampled_pairs(
    tokenizer: Tokenizer,
    sampling: SubwordSamplingConfig,
    *,
    max_tokens: int | None = None,
    model_type: Literal["unigram", "bpe"] = "unigram",
) -> Pairs:
    samplers = make_samplers((tokenizer, tokenizer), sampling, model_type)
    return Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=max_tokens, samplers=samplers)


def segmented(sampling: SubwordSamplingConfig, seed: int) -> tuple[list[list[int]], list[list[int]]]:
    tokenizer = toy_tokenizer()
    pairs = sampled_pairs(tokenizer, sampling)
    pairs.segment(seed)
    return sides(pairs)


@pytest.mark.parametrize("side", [0, 1])
def test_only_the_side_that_is_asked_for_is_sampled(side: int) -> None:
    plain = segmented(SubwordSamplingConfig(), 1)
    one = segmented(SubwordSamplingConfig(source=side == 0, target=side == 1), 1)
    assert one[side] != plain[side]
    assert one[1 - side] == plain[1 - side]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_segmentation_that_is_too_long_gives_way_to_the_best(seed: int) -> None:
    tokenizer = toy_tokenizer()
    best = segmented(SubwordSamplingConfig(), 1)
    limit = max(len(ids) for side in best for ids in side)
    pairs = sampled_pairs(tokenizer, BOTH, max_tokens=limit)
    pairs.segment(3)
    pairs.segment(seed)
    expected = tuple(
        [ids if len(ids) <= limit else own for ids, own in zip(drawn, of_best, strict=True)]
        for drawn, of_best in zip(segmented(BOTH, seed), best, strict=True)
    )
    assert sides(pairs) == expected
    assert expected not in (best, segmented(BOTH, seed))


@pytest.mark.parametrize("setting", [{"alpha": 0.1}, {"nbest_size": 64}])
def test_a_setting_that_changes_nothing_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"changes nothing: neither subword_sampling\.source nor .*leave it"):
        SubwordSamplingConfig(**setting)
