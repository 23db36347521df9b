"""A test set cut by the length of its sources."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """The sentences whose sources have so many words."""

    least: int
    """Words of the shortest source in it."""
    most: int
    """Words of the longest."""
    numbers: tuple[int, ...]
    """The sentences, as places in the test set, ascending."""
    joined: bool = False
    """Whether each is several sentences joined to one."""

    @property
    def label(self) -> str:
        """Its words, as a table shows them."""
        words = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{words}, joined" if self.joined else words


def num_words(sentence: str) -> int:
    """Words of a sentence: what white space separates. The same for every model, whatever its pieces."""
    return len(sentence.split())


def cut_buckets(sources: Sequence[str], *, words: int, min_sentences: int) -> list[Bucket]:
    """Buckets of `words` lengths each, such as 1 to 5, 6 to 10, ..., every sentence in exactly one.

    One of fewer than `min_sentences` sentences is merged with the next longer one, the last with the one
    before it. Raises ValueError where all sentences together are fewer.
    """
    if len(sources) < min_sentences:
        raise ValueError(
            f"a bucket is to have {min_sentences} sentences, but there are only {len(sources)}: "
            "lower --bucket-sentences, or give a larger test set"
        )
    by_place: dict[int, list[int]] = {}
    for number, source in enumerate(sources):
        by_place.setdefault((num_words(source) - 1) // words, []).append(number)
    groups: list[list[int]] = []
    for bucket in sorted(by_place):
        if groups and len(groups[-1]) < min_sentences:
            groups[-1] += by_place[bucket]
        else:
            groups.append(by_place[bucket])
    if len(groups) > 1 and len(groups[-1]) < min_sentences:
        last = groups.pop()
        groups[-1] += last
    return [_bucket(sorted(group), sources) for group in groups]


def joined_bucket(sources: Sequence[str], numbers: Sequence[int], *, min_sentences: int) -> Bucket:
    """The bucket of those of the sources that are joined. Raises ValueError where they are too few."""
    if len(numbers) < min_sentences:
        raise ValueError(
            f"a bucket is to have {min_sentences} sentences, but joined there are only {len(numbers)}: "
            "lower --join, where 1 joins none, or --bucket-sentences, or give a larger test set"
        )
    return _bucket(numbers, sources, joined=True)


def _bucket(numbers: Sequence[int], sources: Sequence[str], *, joined: bool = False) -> Bucket:
    lengths = [num_words(sources[number]) for number in numbers]
    return Bucket(least=min(lengths), most=max(lengths), numbers=tuple(numbers), joined=joined)
