"""The sentences that a measurement translates, and their references."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import MeasurementError


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Sentences, none of them empty, and how a person translated them."""

    name: str
    """Name of the source file, for a report."""
    sources: tuple[str, ...]
    references: tuple[str, ...] | None

    @property
    def num_words(self) -> int:
        """Words of the sources, as white space separates them: the same number for every system."""
        return sum(len(source.split()) for source in self.sources)


def read_corpus(source: Path, reference: Path | None, limit: int | None) -> Corpus:
    """The first `limit` sentences of a file and its reference. Raises MeasurementError if they do not fit."""
    sources = _read_lines(source)
    references = None if reference is None else _read_lines(reference)
    if references is not None and len(references) != len(sources):
        raise MeasurementError(
            f"{source} has {len(sources)} lines and {reference} {len(references)}: they must be as many"
        )
    chosen = [number for number, line in enumerate(sources) if line.strip()][:limit]
    if not chosen:
        raise MeasurementError(f"{source} holds no sentence")
    return Corpus(
        name=source.name,
        sources=tuple(sources[number] for number in chosen),
        references=None if references is None else tuple(references[number] for number in chosen),
    )


def _read_lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise MeasurementError(
            f"{path} cannot be read: {error.strerror}. docs/research/performance.md says where Multi30k is; "
            "--input and --reference name other files"
        ) from error
    return text.removesuffix("\n").split("\n") if text else []
