"""A system of phrases: its training, its translations, and its folder with `smt.json`, words and arrays.

Punctuation stands apart, and a mark on it says where there was no white space, so that words give their text.
A sentence's first word is written as it is within sentences.
"""

import dataclasses
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dragoman_training import saved_folder
from dragoman_training.alignment.bitext import Bitext, Vocabulary, WordPair, WordRule
from dragoman_training.alignment.links import Matrix, Method
from dragoman_training.alignment.training import TrainingOptions, train_aligner, usable_pairs
from dragoman_training.classics.smt.decoder import Decoder, Derivation, SearchOptions, Weights
from dragoman_training.classics.smt.language_model import LanguageModel, estimate
from dragoman_training.classics.smt.phrases import PhraseTable, learn_phrases
from dragoman_training.time_left import Say

JOINER = "￭"
_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(line: str) -> list[str]:
    """The words of a line. A mark before or behind punctuation says that it touches what stands there."""
    words: list[str] = []
    last_end, last_marked = -1, True
    for match in _WORD.finditer(line.replace(JOINER, " ")):
        word, touches = match.group(), match.start() == last_end
        last_end = match.end()
        is_word = word[0].isalnum() or word[0] == "_"
        if touches and is_word and not last_marked:
            words[-1] += JOINER
        words.append(JOINER + word if touches and not is_word else word)
        last_marked = is_word
    return words


def join_words(words: Iterable[str]) -> str:
    """The reverse, up to white space."""
    line = " ".join(words)
    return line.replace(f" {JOINER}", "").replace(f"{JOINER} ", "").replace(JOINER, "")


@dataclass(frozen=True, eq=False)
class Casing:
    """How words are written where no sentence begins, by their lower-case forms."""

    form: Mapping[str, str]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Casing":
        """Each word's most frequent form behind the first word of sentences."""
        counts: dict[str, Counter[str]] = {}
        for sentence in sentences:
            for word in sentence[1:]:
                counts.setdefault(word.lower(), Counter())[word] += 1
        return cls({low: max(sorted(forms), key=forms.__getitem__) for low, forms in counts.items()})

    def within(self, words: Sequence[str]) -> list[str]:
        """A sentence as it is written within another: only its first word may change."""
        return [self.form.get(words[0].lower(), words[0]), *words[1:]] if words else []


Report = Callable[[int], None]
"""Called with how many lines are done."""


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

    def translate(
        self, lines: Sequence[str], *, threads: int = 1, report: Report = lambda done: None
    ) -> list[str]:
        """The best translation of each line; an empty line has an empty one."""
        return [found[0][0] for found in self.candidates(lines, 1, threads=threads, report=report)]

    def candidates(
        self, lines: Sequence[str], num_best: int, *, threads: int = 1, report: Report = lambda done: None
    ) -> Iterator[list[tuple[str, Derivation]]]:
        """The best translations of each line, each text once, the best first."""
        decoder = Decoder(self.table, self.language_model, self.weights, self.search)

        def decode(line: str) -> list[tuple[str, Derivation]]:
            words = self.source_casing.within(split_words(line))
            numbers = [self.source.number(word) for word in words]
            large = next((char.isupper() for char in line if char.isalpha()), False)
            found: dict[str, Derivation] = {}
            for derivation in decoder.decode(words, numbers, num_best):
                # Other words may make the same text: the best of them stands for it.
                found.setdefault(self._text(derivation, large=large), derivation)
            return list(found.items())

        pool = ThreadPoolExecutor(threads)
        try:
            for number, found in enumerate(pool.map(decode, lines), 1):
                report(number)
                yield found
        finally:
            # Whoever stops in the middle waits for the sentences at hand alone.
            pool.shutdown(cancel_futures=True)

    def _text(self, derivation: Derivation, *, large: bool) -> str:
        """A translation begins with a capital where its source does."""
        words = self.target.words
        line = join_words(word if isinstance(word, str) else words[word] for word in derivation.words)
        return line[:1].upper() + line[1:] if large else line


FORMAT_VERSION = 1
_MANIFEST = "smt.json"


def save_system(system: System, folder: Path) -> None:
    """Writes the folder, all of it or nothing. Raises ValueError where something is there already."""
    with saved_folder.written_whole(folder) as partial:
        saved_folder.write_words(partial / "source.casing", tuple(system.source_casing.form.values()))
        saved_folder.write_arrays(partial / "phrases.npz", system.table.arrays())
        saved_folder.write_arrays(partial / "language-model.npz", system.language_model.arrays())
        manifest = {
            "format_version": FORMAT_VERSION,
            "weights": dataclasses.asdict(system.weights),
            "search": dataclasses.asdict(system.search),
            **saved_folder.write_sides(partial, system.source.words, system.target.words),
        }
        saved_folder.write_manifest(partial / _MANIFEST, manifest)


def load_system(folder: Path) -> System:
    """Reads it. Raises ValueError for what is no system, or one of another version."""
    with saved_folder.read_folder(
        folder, _MANIFEST, kind="system", command="dragoman smt train", version=FORMAT_VERSION
    ) as manifest:
        source, target = map(Vocabulary, saved_folder.read_sides(folder, manifest))
        forms = saved_folder.read_words(folder / "source.casing")
        return System(
            source=source,
            target=target,
            source_casing=Casing({form.lower(): form for form in forms}),
            table=PhraseTable.from_arrays(saved_folder.read_arrays(folder / "phrases.npz")),
            language_model=LanguageModel.from_arrays(saved_folder.read_arrays(folder / "language-model.npz")),
            weights=Weights(**manifest["weights"]),
            search=SearchOptions(**manifest["search"]),
        )


MAX_STORED_OPTIONS = 50
"""Translations of a source phrase that are saved."""
BLOCK_PAIRS = 10_000


@dataclass(frozen=True, kw_only=True)
class SystemOptions:
    aligner: str = "hmm"
    """The last model of the chain that links the words."""
    symmetrize: Method = "grow-diag-final-and"
    """How the links of both directions become one alignment."""
    max_phrase_words: int = 7
    """Words of a phrase, on either side; 1 makes a word-based system."""
    order: int = 4
    """Words of the language model's n-grams."""
    min_counts: Sequence[int] = (1, 1, 1)
    """How often an n-gram of 1, 2, … words occurs at least."""
    max_words: int = 100
    """A pair with a longer sentence is not learnt from."""
    search: SearchOptions = SearchOptions()  # noqa: RUF009


def train_system(
    lines: Sequence[tuple[str, str]],
    options: SystemOptions,
    *,
    more_target: Sequence[str] = (),
    say: Say = lambda line: None,
) -> System:
    """A system with weights that are not tuned yet. `more_target` is text for the language model alone.

    Raises ValueError where there is nothing to learn from.
    """
    began = time.monotonic()

    def tell(line: str) -> None:
        say(f"{line}; {time.monotonic() - began:.0f} s")

    split = [(split_words(one), split_words(other)) for one, other in lines]
    casing = Casing.of(one for one, _ in split)
    target_casing = Casing.of(other for _, other in split)
    cased = [(casing.within(one), target_casing.within(other)) for one, other in split]
    usable = usable_pairs(cased, options.max_words)
    more = [target_casing.within(words) for words in map(split_words, more_target) if words]
    links = _link(usable, options, tell)
    source = Vocabulary.of(one for one, _ in usable)
    target = Vocabulary.of([*(other for _, other in usable), *more])
    sources, targets = zip(*usable, strict=True)
    bitext = Bitext(source.numbered(sources), target.numbered(targets))
    table = learn_phrases(bitext, links, max_words=options.max_phrase_words, max_options=MAX_STORED_OPTIONS)
    tell(f"{len(table):,} phrase pairs")
    text = [[target.number(word) for word in words] for words in [*(other for _, other in usable), *more]]
    model = estimate(text, len(target.words), order=options.order, min_counts=options.min_counts)
    tell(f"{len(model.word_T):,} n-grams of up to {options.order} words")
    return System(
        source=source,
        target=target,
        source_casing=casing,
        table=table,
        language_model=model,
        weights=Weights(),
        search=options.search,
    )


def _link(pairs: Sequence[WordPair], options: SystemOptions, tell: Say) -> list[Matrix]:
    """The links of the words, without regard to case."""
    lowered = [([word.lower() for word in one], [word.lower() for word in other]) for one, other in pairs]
    how = TrainingOptions(model=options.aligner)
    aligner = train_aligner(lowered, how, WordRule(), lambda iteration: tell(str(iteration)))
    links: list[Matrix] = []
    for first in range(0, len(lowered), BLOCK_PAIRS):
        links += aligner.align(lowered[first : first + BLOCK_PAIRS], options.symmetrize)
    return links
