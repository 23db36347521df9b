"""A trained system: lines of text in, lines of text out."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from dragoman_training.alignment.corpus.bitext import Vocabulary
from dragoman_training.classics.smt.language_model.model import LanguageModel
from dragoman_training.classics.smt.phrases.table import PhraseTable
from dragoman_training.classics.smt.search.decoder import Decoder, Derivation, SearchOptions
from dragoman_training.classics.smt.search.features import Weights
from dragoman_training.classics.smt.surface import Casing, begins_large, capitalize, join_words, split_words

Report = Callable[[int, int], None]
"""Told how many lines of how many are done."""


@dataclass(frozen=True, eq=False, kw_only=True)
class System:
    """What a trained system knows."""

    source: Vocabulary
    target: Vocabulary
    source_casing: Casing
    table: PhraseTable
    language_model: LanguageModel
    weights: Weights
    search: SearchOptions

    def with_weights(self, weights: Weights) -> "System":
        """The same, with others."""
        return replace(self, weights=weights)

    def translate(
        self, lines: Sequence[str], *, threads: int = 1, report: Report = lambda done, total: None
    ) -> list[str]:
        """The best translation of each line; an empty line has an empty one."""
        return [found[0][0] for found in self.candidates(lines, 1, threads=threads, report=report)]

    def candidates(
        self,
        lines: Sequence[str],
        num_best: int,
        *,
        threads: int = 1,
        report: Report = lambda done, total: None,
    ) -> Iterator[list[tuple[str, Derivation]]]:
        """Of each line its best translations, each text once, the best first."""
        decoder = Decoder(
            table=self.table,
            language_model=self.language_model,
            weights=self.weights,
            options=self.search,
        )

        def decode(line: str) -> list[tuple[str, Derivation]]:
            words = self.source_casing.within(split_words(line))
            numbers = [self.source.number(word) for word in words]
            large = begins_large(line)
            found: dict[str, Derivation] = {}
            for derivation in decoder.decode(words, numbers, num_best):
                # Other words may make the same text: the best of them stands for it.
                found.setdefault(self._text(derivation, large=large), derivation)
            return list(found.items())

        pool = ThreadPoolExecutor(threads)
        try:
            for number, found in enumerate(pool.map(decode, lines), 1):
                report(number, len(lines))
                yield found
        finally:
            # Whoever stops in the middle waits for the sentences at hand alone.
            pool.shutdown(cancel_futures=True)

    def _text(self, derivation: Derivation, *, large: bool) -> str:
        """A translation begins with a capital where its source does."""
        words = [word if isinstance(word, str) else self.target.words[word] for word in derivation.words]
        line = join_words(words)
        return capitalize(line) if large else line
