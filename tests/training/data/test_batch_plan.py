"""Batches are those that plain loops over lists cut, to the number; runs that are resumed rest on them."""

import hashlib
import json
import random

import numpy as np
import pytest

from dragoman_training.data.batch_plan import plan_batches, shuffler_of


def plan_by_lists(lengths: list[tuple[int, int]], budget_tokens: int, seed: int | None) -> list[list[int]]:
    """Shuffles, sorts and cuts pair by pair."""
    order = list(range(len(lengths)))
    generator = None if seed is None else shuffler_of(seed)
    if generator:
        generator.shuffle(order)
    order.sort(key=lambda number: (lengths[number][1], lengths[number][0]))
    batches: list[list[int]] = []
    longest = 0
    for number in order:
        longest = max(longest, *(side + 1 for side in lengths[number]))
        if not batches or longest * (len(batches[-1]) + 1) > budget_tokens:
            batches.append([])
            longest = max(side + 1 for side in lengths[number])
        batches[-1].append(number)
    if generator:
        generator.shuffle(batches)
    return batches


def random_lengths(count: int, longest: int) -> list[tuple[int, int]]:
    generator = random.Random(count)
    targets = [generator.randint(1, longest) for _ in range(count)]
    return [(max(0, target + generator.randint(-5, 5)), target) for target in targets]


@pytest.mark.parametrize(
    ("count", "longest", "budget_tokens"),
    [(0, 9, 100), (1, 9, 3), (500, 40, 1), (500, 40, 100), (20_000, 100, 1800), (20_000, 900, 5000)],
)
@pytest.mark.parametrize("seed", [None, 1, 2_000_009])
def test_batches_are_those_of_plain_loops(
    count: int, longest: int, budget_tokens: int, seed: int | None
) -> None:
    lengths = random_lengths(count, longest)
    sources, targets = np.array(lengths, np.int64).reshape(-1, 2).T
    plan = plan_batches(sources, targets, budget_tokens, shuffler=None if seed is None else shuffler_of(seed))
    assert list(plan) == plan_by_lists(lengths, budget_tokens, seed)


def test_batches_are_the_same_in_every_version() -> None:
    """Golden: what a seed gives must stay, or a run that is resumed has pairs twice and others never."""
    sources, targets = np.array(random_lengths(20_000, 100)).T
    plan = plan_batches(sources, targets, 1800, shuffler=shuffler_of(1_000_003))
    assert len(plan) == 612
    checksum = hashlib.sha256(json.dumps(list(plan)).encode()).hexdigest()
    assert checksum == "603b3691a8247f268c14b43c8c3bb81ea60e3e99564f293245bafddc9d13ab52"
