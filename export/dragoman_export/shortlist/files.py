"""Files that a shortlist is made of where the training corpus is not here: parallel text, or a lexicon."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dragoman_bundle.shortlist import Shortlist

from dragoman_export.shortlist.lexicon import read_lexicon
from dragoman_export.shortlist.options import ShortlistOptions
from dragoman_export.subject import Subject
from dragoman_training.data.files import read_parallel


@dataclass(frozen=True, kw_only=True)
class ShortlistFiles:
    """What a shortlist is made of where it is not the training corpus."""

    text: tuple[Path, Path] | None
    """Two files that match line by line."""
    lexicon: Path | None
    aligner: Path | None = None
    """Folder of a saved aligner that links the words of `text`."""

    def command_line(self) -> str:
        """The options that name them, for a card: the folders they were in are nobody else's."""
        if self.text is not None:
            text = f"--shortlist-text {self.text[0].name} {self.text[1].name}"
            return text if self.aligner is None else f"{text} --shortlist-from {self.aligner.name}"
        assert self.lexicon is not None
        return f"--shortlist-lexicon {self.lexicon.name}"

    def builder(
        self, subject: Subject, options: ShortlistOptions, report: Callable[[str], None]
    ) -> Callable[[], Shortlist]:
        """What makes the subject's shortlist of them; the files are read here. Raises ValueError."""
        if subject.continues:
            raise ValueError(
                f"{self.command_line()} is of sentences and their translations, and the model is a "
                "language model; leave it out"
            )
        tokenizers = subject.source_tokenizer, subject.target_tokenizer
        if self.text is not None:
            # Here, since what learns needs an extra that what reads a lexicon does not.
            from dragoman_export.shortlist.builder import learn_shortlist
            from dragoman_training.alignment.aligner import load_aligner

            corpus = read_parallel(*self.text)
            limit = subject.decoding.max_source_tokens
            aligner = None if self.aligner is None else load_aligner(self.aligner)
            return partial(
                learn_shortlist, corpus, *tokenizers, options, report, max_tokens=limit, aligner=aligner
            )
        assert self.lexicon is not None
        shortlist = read_lexicon(self.lexicon, *tokenizers, options, report)
        return lambda: shortlist
