"""The space of a text: a vector for each of its words, by which the words around it can be told.

Skip-gram with negative sampling (Mikolov et al. 2013, "Distributed Representations of Words and Phrases and
their Compositionality", section 2.2). gensim, which trains and saves them, is an extra: imported when needed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_training.alignment.corpus.text import WordRule, read_lines
from dragoman_training.classics.words.space import Space

Report = Callable[[int], None]
"""Is told how many epochs are done."""


@dataclass(frozen=True, kw_only=True)
class SkipGramOptions:
    """How vectors are trained. One thread: the same text gives the same vectors."""

    width: int = 100
    window: int = 5
    """Most words between a word and one that it tells."""
    negatives: int = 10
    """Words by chance that each of these is told apart from."""
    frequent: float = 1e-4
    """Words of a larger share of the text are left out at times: t of section 2.3."""
    min_count: int = 5
    """Words seen less often have no vector."""
    epochs: int = 5
    seed: int = 1


@dataclass(frozen=True)
class Sentences:
    """The words of files, line by line, as often as they are asked for. Case stays: German nouns have it."""

    paths: Sequence[Path]

    def __iter__(self) -> Iterator[list[str]]:
        """Raises ValueError for bytes that are no UTF-8."""
        rule = WordRule(tokenize=True, lowercase=False)
        for path in self.paths:
            yield from map(rule.split, read_lines(path))


def check_gensim() -> None:
    """Raises ValueError where it is not installed: before anything takes long."""
    try:
        import gensim  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError(
            f"vectors of a text need {error.name}, which is not installed: install the extra `vectors`"
        ) from error


def train_vectors(texts: Sequence[Path], out: Path, options: SkipGramOptions, report: Report) -> None:
    """Writes the vectors to a file that is not there yet, whole or not at all.

    Raises ValueError where it is, and for texts with too few words.
    """
    from gensim.models import Word2Vec
    from gensim.models.callbacks import CallbackAny2Vec

    class Told(CallbackAny2Vec):  # type: ignore[misc]
        done = 0

        def on_epoch_end(self, model: object) -> None:
            self.done += 1
            report(self.done)

    if out.exists():
        raise ValueError(f"{out} exists: leave the text out to read it, or choose another file")
    model = Word2Vec(
        vector_size=options.width,
        window=options.window,
        negative=options.negatives,
        sample=options.frequent,
        min_count=options.min_count,
        seed=options.seed,
        sg=1,
        workers=1,
    )
    sentences = Sentences(texts)
    model.build_vocab(sentences)
    if len(model.wv) < 2:
        raise ValueError(
            f"fewer than two words stand {options.min_count} times in the text: vectors need more of it"
        )
    model.train(sentences, total_examples=model.corpus_count, epochs=options.epochs, callbacks=[Told()])
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        model.wv.save_word2vec_format(str(partial))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)


def open_vectors(path: Path) -> Space:
    """Reads them; other programs' in word2vec's text format, too. Raises ValueError for what is none."""
    from gensim.models import KeyedVectors

    try:
        vectors: Any = KeyedVectors.load_word2vec_format(str(path))
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} holds no vectors in word2vec's text format: {error}") from error

    def row_of(word: str) -> int:
        if word not in vectors.key_to_index:
            raise ValueError(f"{word!r} has no vector: the text has it too seldom, or written otherwise")
        return int(vectors.key_to_index[word])

    return Space(
        title=f"skip-gram, {path.name}", vector_VD=vectors.vectors, words=vectors.index_to_key, row_of=row_of
    )
