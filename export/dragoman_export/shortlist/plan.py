"""What a shortlist is made of, and how large it is: of the training corpus, other text, or a lexicon."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dragoman_bundle.shortlist import Shortlist

from dragoman_export.shortlist.lexicon import read_lexicon
from dragoman_export.shortlist.options import ShortlistOptions
from dragoman_export.subject import Subject
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.files import read_parallel


@dataclass(frozen=True, kw_only=True)
class ShortlistPlan:
    """The shortlist that is wanted; of the training corpus where neither text nor a lexicon is named."""

    text: tuple[Path, Path] | None = None
    """Two files that match line by line."""
    lexicon: Path | None = None
    aligner: Path | None = None
    """Folder of a saved aligner that links the words of the text or the corpus."""
    options: ShortlistOptions

    @property
    def has_files(self) -> bool:
        """Whether it is made of files, and not of the training corpus."""
        return bool(self.text or self.lexicon)

    def command_line(self) -> str:
        """The options that ask for it, for a card: the folders that files were in are nobody else's."""
        asked = [
            f"--shortlist-text {self.text[0].name} {self.text[1].name}" if self.text else "",
            f"--shortlist-lexicon {self.lexicon.name}" if self.lexicon else "",
            f"--shortlist-from {self.aligner.name}" if self.aligner else "",
        ]
        return self.options.command_line(" ".join(filter(None, asked)) or "--shortlist")

    def builder(
        self,
        subject: Subject,
        report: Callable[[str], None],
        corpus: Corpus | None = None,
        max_tokens: int | None = None,
    ) -> Callable[[], Shortlist]:
        """What makes the subject's shortlist; the files are read here. Raises ValueError.

        It learns from the training corpus where it has no files, without pairs of more than `max_tokens`.
        """
        if subject.continues:
            raise ValueError(
                f"{self.command_line()} is of sentences and their translations, and the model is a "
                "language model; leave it out"
            )
        tokenizers = subject.source_tokenizer, subject.target_tokenizer
        if self.lexicon is not None:
            shortlist = read_lexicon(self.lexicon, *tokenizers, self.options, report)
            return lambda: shortlist
        # Here, since what learns needs an extra that what reads a lexicon does not.
        from dragoman_export.shortlist.builder import MAX_PAIRS, learn_shortlist
        from dragoman_training.alignment.aligner import load_aligner

        max_pairs = MAX_PAIRS if corpus is None else len(corpus)
        if self.text is not None:
            corpus, max_pairs, max_tokens = read_parallel(*self.text), MAX_PAIRS, None
        assert corpus is not None
        return partial(
            learn_shortlist,
            corpus,
            *tokenizers,
            self.options,
            report,
            max_tokens=max_tokens or subject.decoding.max_source_tokens,
            max_pairs=max_pairs,
            aligner=None if self.aligner is None else load_aligner(self.aligner),
        )
