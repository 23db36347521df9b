"""Options of `dragoman export` for the shortlist: whether there is one, from what, and how large."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dragoman_export.shortlist.builder import ShortlistOptions
    from dragoman_export.shortlist.files import ShortlistFiles

Command = Callable[..., None]
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, kw_only=True)
class ShortlistRequest:
    """The shortlist that a command line asks for."""

    shortlist: bool | None
    """Whether one is learnt from the training corpus; None: if the corpus can be read."""
    shortlist_text: tuple[Path, Path] | None
    shortlist_lexicon: Path | None
    shortlist_aligner: Path | None
    shortlist_targets: int
    shortlist_frequent: int
    shortlist_probability: float

    @property
    def has_files(self) -> bool:
        """Whether it is made of files, and not of the training corpus."""
        return bool(self.shortlist_text or self.shortlist_lexicon)

    @property
    def is_wanted(self) -> bool | None:
        """Whether one is to be learnt from the training corpus; None where nobody said."""
        return True if self.shortlist_aligner else self.shortlist

    def check(self, *, is_foreign: bool) -> None:
        """Raises click.UsageError for options that do not go together; a foreign model has no corpus."""
        if self.shortlist_text and self.shortlist_lexicon:
            raise click.UsageError("give either --shortlist-text or --shortlist-lexicon")
        if self.has_files and self.shortlist is not None:
            raise click.UsageError(
                "--shortlist-text and --shortlist-lexicon go without --shortlist/--no-shortlist"
            )
        if self.shortlist_aligner and (self.shortlist_lexicon or self.shortlist is False):
            raise click.UsageError("--shortlist-from goes without --shortlist-lexicon and --no-shortlist")
        if is_foreign and self.shortlist_aligner and not self.shortlist_text:
            raise click.UsageError(
                "--shortlist-from links the words of a training corpus, which a model from elsewhere has "
                "not: give --shortlist-text, too"
            )
        if is_foreign and self.shortlist:
            raise click.UsageError(
                "--shortlist needs the corpus of a recipe, which a model from elsewhere has not; give "
                "--shortlist-text or --shortlist-lexicon"
            )

    def options(self) -> "ShortlistOptions":
        """How large it is."""
        from dragoman_export.shortlist.builder import ShortlistOptions

        return ShortlistOptions(
            max_targets=self.shortlist_targets,
            min_probability=self.shortlist_probability,
            num_frequent=self.shortlist_frequent,
        )

    def files(self) -> "ShortlistFiles | None":
        """The files that it is made of, if any."""
        from dragoman_export.shortlist.files import ShortlistFiles

        if not self.has_files:
            return None
        return ShortlistFiles(
            text=self.shortlist_text, lexicon=self.shortlist_lexicon, aligner=self.shortlist_aligner
        )


def shortlist_options(command: Command) -> Command:
    """Adds the options of `ShortlistRequest` to a command, and passes them on as `shortlist`."""

    @wraps(command)
    def with_shortlist(**options: Any) -> None:
        names = [field.name for field in fields(ShortlistRequest)]
        command(shortlist=ShortlistRequest(**{name: options.pop(name) for name in names}), **options)

    decorated: Command = with_shortlist
    for decorate in reversed(
        [
            click.option(
                "--shortlist/--no-shortlist",
                default=None,
                help="Learn a lexical shortlist, which makes decoding faster, from the training corpus that "
                "the (first) checkpoint's recipe names.  [default: if the corpus can be read]",
            ),
            click.option(
                "--shortlist-text",
                metavar="SOURCE TARGET",
                nargs=2,
                type=_FILE,
                help="Learn the shortlist from these files, which match line by line: any text of the kind "
                "that will be translated.",
            ),
            click.option(
                "--shortlist-lexicon",
                metavar="FILE",
                type=_FILE,
                help="Take the shortlist from Marian's lex.s2t, gzipped or not, or CTranslate2's vmap.",
            ),
            click.option(
                "--shortlist-from",
                "shortlist_aligner",
                metavar="DIR",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                help="Learn the shortlist from the words that this aligner, saved by `dragoman align train`, "
                "links in the training corpus or in --shortlist-text.  [default: from the pieces alone, by "
                "IBM model 1]",
            ),
            click.option(
                "--shortlist-targets",
                default=50,
                show_default=True,
                type=click.IntRange(min=1),
                help="Most target pieces that the shortlist has for a source piece.",
            ),
            click.option(
                "--shortlist-frequent",
                default=100,
                show_default=True,
                type=click.IntRange(min=0),
                help="Most frequent target pieces that every sentence may use.",
            ),
            click.option(
                "--shortlist-probability",
                default=1e-4,
                show_default=True,
                type=click.FloatRange(0, 1),
                help="Least probability of a target piece, given the source piece.",
            ),
        ]
    ):
        decorated = decorate(decorated)
    return decorated
