"""What a study is given: checkpoints under their labels, and a test set cut by the length of its sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman_training.checkpoint import read_checkpoint
from dragoman_training.data.files import read_pairs


@dataclass(frozen=True, kw_only=True)
class StudySet:
    """What every model of the study translates."""

    sources: tuple[str, ...]
    """The test set's own sentences, and behind them long ones, each of several of these joined."""
    references: tuple[str, ...]
    """Their translations, joined alike."""
    num_sentences: int
    """How many are the test set's own."""
    join: int
    """Sentences of a joined one; 1 where there are none."""
    examples: tuple[int, ...]
    """Places of the sentences that heat maps are drawn of."""

    @property
    def own(self) -> range:
        """Places of the test set's own sentences."""
        return range(self.num_sentences)

    @property
    def joined(self) -> range:
        """Places of the joined ones."""
        return range(self.num_sentences, len(self.sources))


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """The sentences whose sources have `least` to `most` words."""

    least: int
    most: int
    numbers: tuple[int, ...]
    """The sentences, as places in the test set, ascending."""
    joined: bool = False
    """Whether each is several sentences joined to one."""

    @classmethod
    def of(cls, numbers: Sequence[int], sources: Sequence[str], *, joined: bool = False) -> "Bucket":
        """The bucket of some sentences."""
        lengths = [num_words(sources[number]) for number in numbers]
        return cls(least=min(lengths), most=max(lengths), numbers=tuple(numbers), joined=joined)

    @property
    def label(self) -> str:
        """Its words, as a table shows them."""
        words = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{words}, joined" if self.joined else words


def num_words(sentence: str) -> int:
    """Words of a sentence: what white space separates. The same for every model, whatever its pieces."""
    return len(sentence.split())


def cut_buckets(test_set: StudySet, *, words: int, min_sentences: int) -> list[Bucket]:
    """Buckets of `words` lengths each, such as 1 to 5, 6 to 10, ..., and then that of joined sentences.

    Each of the test set's own is in exactly one. A bucket of fewer than `min_sentences` is merged with the
    next longer one, the last with the one before it. Raises ValueError where there are fewer in all.
    """
    sources, own, joined = test_set.sources, test_set.own, test_set.joined
    for there, kind, way_out in ((own, "", ""), (joined, "joined ", "--join, where 1 joins none, or ")):
        if len(there) < min_sentences and (not kind or test_set.join > 1):
            raise ValueError(
                f"a bucket is to have {min_sentences} sentences, but {kind}there are only {len(there)}: "
                f"lower {way_out}--bucket-sentences, or give a larger test set"
            )
    by_length: dict[int, list[int]] = {}
    for number in own:
        by_length.setdefault((num_words(sources[number]) - 1) // words, []).append(number)
    groups: list[list[int]] = []
    for length in sorted(by_length):
        if groups and len(groups[-1]) < min_sentences:
            groups[-1] += by_length[length]
        else:
            groups.append(by_length[length])
    if len(groups) > 1 and len(groups[-1]) < min_sentences:
        groups[-2:] = [groups[-2] + groups[-1]]
    buckets = [Bucket.of(sorted(group), sources) for group in groups]
    return [*buckets, *([Bucket.of(joined, sources, joined=True)] if joined else [])]


def labelled_checkpoints(checkpoints: tuple[str, ...]) -> dict[str, Path]:
    """Labels and files. Raises ValueError where two models have one label, or a file is not there."""
    labelled: dict[str, Path] = {}
    directions: dict[str, Path] = {}
    for argument in checkpoints:
        label, equals, name = argument.partition("=")
        path = Path(name) if equals and not Path(argument).exists() else Path(argument)
        _, recipe, _ = read_checkpoint(path)
        if not recipe.data.has_source:
            raise ValueError(f"{path} is a language model and translates nothing: leave it out")
        if path == Path(argument):
            label = recipe.name
        if label in labelled:
            raise ValueError(
                f'two models are called "{label}", {labelled[label]} and {path}: give LABEL={path}'
            )
        labelled[label] = path
        directions[recipe.data.direction] = path
    if len(directions) > 1:
        (first, one), (second, other), *_ = directions.items()
        raise ValueError(
            f"{one} translates {first}, but {other} {second}: a study is of one pair of languages"
        )
    return labelled


def read_study_set(source: Path, reference: Path, sentences: str | None, *, join: int) -> StudySet:
    """The test set, its examples, and sentences joined of `join` consecutive ones; for 1 there are none.

    Raises ValueError for files that don't fit, or lines not in them.
    """
    pairs = list(read_pairs(source, reference))
    for number, pair in enumerate(pairs, start=1):
        for path, line in zip((source, reference), pair, strict=True):
            if not line.strip():
                raise ValueError(f"{path}, line {number}: is empty; leave the pair out")
    if not pairs:
        raise ValueError(f"{source} is empty")
    sources, references = zip(*pairs, strict=True)
    if sentences is None:
        by_length = sorted(range(len(sources)), key=lambda number: num_words(sources[number]))
        examples = dict.fromkeys(by_length[len(sources) * share // 100] for share in (20, 50, 80))
    else:
        examples = dict.fromkeys(_line(text, len(sources)) - 1 for text in sentences.split(","))
    return StudySet(
        sources=(*sources, *_joined(sources, join)),
        references=(*references, *_joined(references, join)),
        num_sentences=len(sources),
        join=join,
        examples=tuple(examples),
    )


def _joined(sentences: Sequence[str], join: int) -> list[str]:
    """Each `join` consecutive sentences as one; what is left over at the end is in none.

    Commas and small letters stand where one ends and the next begins: after a full stop a model that has
    learnt from single sentences would end its translation.
    """
    result = []
    for end in range(join, len(sentences) + 1, join) if join > 1 else ():
        first, *following = sentences[end - join : end]
        *beginning, last = [first, *(other[:1].lower() + other[1:] for other in following)]
        result.append(", ".join([*(sentence.rstrip(" .!?") for sentence in beginning), last]))
    return result


def _line(text: str, num_lines: int) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= num_lines:
        raise ValueError(f'--sentences has "{text}", but must be lines from 1 to {num_lines}, such as 3,17')
    return int(text)
