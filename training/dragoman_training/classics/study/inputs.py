"""What the study is given: checkpoints under their labels, and the test set."""

from dataclasses import dataclass
from pathlib import Path

from dragoman_training.checkpoint import read_checkpoint
from dragoman_training.classics.study.buckets import num_words
from dragoman_training.data.corpus import read_lines


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
    sources, references = read_lines(source), read_lines(reference)
    if len(sources) != len(references):
        raise ValueError(
            f"{source} has {len(sources)} lines, but {reference} has {len(references)}: "
            "they must match line by line"
        )
    for path, lines in ((source, sources), (reference, references)):
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                raise ValueError(f"{path}, line {number}: is empty; leave the pair out")
    if not sources:
        raise ValueError(f"{source} is empty")
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


def _joined(sentences: list[str], join: int) -> list[str]:
    """Each so many consecutive sentences as one; what is left over at the end is in none."""
    if join == 1:
        return []
    return [_one_of(sentences[end - join : end]) for end in range(join, len(sentences) + 1, join)]


def _one_of(sentences: list[str]) -> str:
    """With commas and small letters where one sentence ends and the next begins.

    After a full stop a model that has learnt from single sentences would end its translation.
    """
    first, *following = sentences
    *beginning, end = [first, *(other[:1].lower() + other[1:] for other in following)]
    return ", ".join([*(sentence.rstrip(" .!?") for sentence in beginning), end])


def _line(text: str, num_lines: int) -> int:
    if not text.strip().isdecimal() or not 1 <= int(text) <= num_lines:
        raise ValueError(f'--sentences has "{text}", but must be lines from 1 to {num_lines}, such as 3,17')
    return int(text)
