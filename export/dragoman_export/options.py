"""Options of what makes a bundle, and the way from them to one: of `dragoman export` and `dragoman get`."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from dragoman_bundle.manifest import PRECISIONS

if TYPE_CHECKING:
    from dragoman_bundle.bundle import Bundle
    from dragoman_bundle.shortlist import Shortlist

    from dragoman_export.model import Subject
    from dragoman_export.parity.sentences import CheckText
    from dragoman_training.data.corpus import Corpus

Command = Callable[..., None]
Decorator = Callable[[Command], Command]
Report = Callable[[str], None]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)


def _parse_precisions(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """`fp32,int8` to its parts, each once, in the order of the manifest's names."""
    precisions = {part.strip() for part in value.split(",") if part.strip()}
    if unknown := sorted(precisions - set(PRECISIONS)):
        raise click.BadParameter(f"{unknown[0]!r} is unknown; known are {', '.join(PRECISIONS)}")
    if not precisions:
        raise click.BadParameter(f"give at least one of {', '.join(PRECISIONS)}")
    return tuple(precision for precision in PRECISIONS if precision in precisions)


def check_folder(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """A folder that says the model's name and version itself, not by where the command is run."""
    if value is None:
        return None
    if not value.parent.name or not any(character.isdigit() for character in value.name):
        raise click.BadParameter(
            f"{value} does not end in NAME/VERSION, a version having a number: "
            f"take models/{value.name or 'NAME'}/1, for example"
        )
    return value.absolute()


@dataclass(frozen=True, kw_only=True)
class ShortlistOptions:
    """How large a lexical shortlist is."""

    max_targets: int = 50
    """Most target tokens of a source token."""
    min_probability: float = 1e-4
    """Least probability of a target token, given its source token."""
    num_frequent: int = 100
    """Target tokens that every sentence may use: those most frequent in the corpus."""


@dataclass(frozen=True, kw_only=True)
class ShortlistRequest:
    """The shortlist that a command line asks for: of the training corpus, other text, or a lexicon."""

    shortlist: bool | None
    """Whether one is learnt from the training corpus; None: if the corpus can be read."""
    shortlist_text: tuple[Path, Path] | None
    shortlist_lexicon: Path | None
    shortlist_aligner: Path | None
    shortlist_sizes: ShortlistOptions

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

    def command_line(self) -> str:
        """The options that ask for it, for a card: the folders that files were in are nobody else's."""
        text, lexicon, aligner = self.shortlist_text, self.shortlist_lexicon, self.shortlist_aligner
        asked = [
            f"--shortlist-text {text[0].name} {text[1].name}" if text else "",
            f"--shortlist-lexicon {lexicon.name}" if lexicon else "",
            f"--shortlist-from {aligner.name}" if aligner else "",
        ]
        flags = {"max_targets": "targets", "min_probability": "probability", "num_frequent": "frequent"}
        sizes, usual = (dataclasses.asdict(each) for each in (self.shortlist_sizes, ShortlistOptions()))
        more = [f"--shortlist-{flag} {sizes[key]}" for key, flag in flags.items() if sizes[key] != usual[key]]
        return " ".join([*(filter(None, asked) if any(asked) else ["--shortlist"]), *more])

    def builder(
        self, subject: "Subject", report: Report, corpus: "Corpus | None" = None, max_tokens: int = 0
    ) -> "Callable[[], Shortlist]":
        """What makes the subject's shortlist; the files are read here. Raises ValueError.

        It learns from the training corpus where it has no files, without pairs of more than `max_tokens`.
        """
        if subject.continues:
            raise ValueError(
                f"{self.command_line()} is of sentences and their translations, and the model is a "
                "language model; leave it out"
            )
        tokenizers = subject.source_tokenizer, subject.target_tokenizer
        if self.shortlist_lexicon is not None:
            from dragoman_export.shortlist.lexicon import read_lexicon

            shortlist = read_lexicon(self.shortlist_lexicon, *tokenizers, self.shortlist_sizes, report)
            return lambda: shortlist
        # What learns needs an extra that what reads a lexicon does not.
        from dragoman_export.shortlist.builder import MAX_PAIRS, learn_shortlist
        from dragoman_training.alignment.aligner import load_aligner
        from dragoman_training.data.files import read_parallel

        aligner = None if self.shortlist_aligner is None else load_aligner(self.shortlist_aligner)
        max_pairs = MAX_PAIRS if corpus is None else len(corpus)
        if self.shortlist_text is not None:
            corpus, max_pairs = read_parallel(*self.shortlist_text), MAX_PAIRS
            max_tokens = subject.decoding.max_source_tokens
        assert corpus is not None
        learn = partial(learn_shortlist, max_tokens=max_tokens, max_pairs=max_pairs, aligner=aligner)
        return partial(learn, corpus, *tokenizers, self.shortlist_sizes, report)


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A bundle as the command line asks for it."""

    precisions: tuple[str, ...]
    check_text: Path | None
    max_memory: float | None
    threads: int | None
    force: bool
    shortlist: ShortlistRequest

    def available_memory(self) -> int | None:
        """Bytes that an export may take; None for no known limit."""
        from dragoman_bundle.machine import available_memory

        return available_memory() if self.max_memory is None else int(self.max_memory * 1e9)

    def text(self) -> "CheckText | None":
        """What graphs are checked on, if that is named. Raises ValueError."""
        from dragoman_export.parity.sentences import CheckText

        return None if self.check_text is None else CheckText.read(self.check_text)

    def run(self, make: Callable[[Report], "Bundle"]) -> "Bundle":
        """Makes a bundle and prints its files. Raises click.ClickException for what was wrong."""
        # Threads that wait in a loop would take the cores from those that work, and from whatever else runs.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        if self.threads is not None:
            os.environ["OMP_NUM_THREADS"] = str(self.threads)
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        try:
            with console.status("") as status:

                def report(line: str) -> None:
                    status.update(line)
                    # What reads a pipe reads lines, of any length.
                    console.print(line, soft_wrap=True)

                bundle = make(report)
        except KeyboardInterrupt:
            click.echo("Stopped; nothing was written.", err=True)
            raise SystemExit(130) from None
        except OSError as error:
            raise click.ClickException(f"{error}; nothing was written") from error
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        for file, entry in bundle.manifest.files.items():
            click.echo(f"{entry.size / 1e6:9.3f} MB  {file}")
        total = sum(entry.size for entry in bundle.manifest.files.values())
        click.echo(f"{total / 1e6:9.3f} MB  {bundle.path}")
        return bundle


def options_of(kind: type[Any], name: str, *decorators: Decorator) -> Decorator:
    """Adds the options to a command that make a dataclass of that kind, and passes it on under the name."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_object(**options: Any) -> None:
            values = {field.name: options.pop(field.name) for field in fields(kind)}
            command(**{name: kind(**values)}, **options)

        decorated: Command = with_object
        for decorator in reversed(decorators):
            decorated = decorator(decorated)
        return decorated

    return decorate


shortlist_options = options_of(
    ShortlistRequest,
    "shortlist",
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
        type=FILE,
        help="Learn the shortlist from these files, which match line by line: any text of the kind "
        "that will be translated.",
    ),
    click.option(
        "--shortlist-lexicon",
        metavar="FILE",
        type=FILE,
        help="Take the shortlist from Marian's lex.s2t, gzipped or not, or CTranslate2's vmap.",
    ),
    click.option(
        "--shortlist-from",
        "shortlist_aligner",
        metavar="DIR",
        type=FOLDER,
        help="Learn the shortlist from the words that this aligner, saved by `dragoman align train`, "
        "links in the training corpus or in --shortlist-text.  [default: from the pieces alone, by "
        "IBM model 1]",
    ),
    options_of(
        ShortlistOptions,
        "shortlist_sizes",
        click.option(
            "--shortlist-targets",
            "max_targets",
            default=ShortlistOptions.max_targets,
            show_default=True,
            type=click.IntRange(min=1),
            help="Most target pieces that the shortlist has for a source piece.",
        ),
        click.option(
            "--shortlist-frequent",
            "num_frequent",
            default=ShortlistOptions.num_frequent,
            show_default=True,
            type=click.IntRange(min=0),
            help="Most frequent target pieces that every sentence may use.",
        ),
        click.option(
            "--shortlist-probability",
            "min_probability",
            default=ShortlistOptions.min_probability,
            show_default=True,
            type=click.FloatRange(0, 1),
            help="Least probability of a target piece, given the source piece.",
        ),
    ),
)
"""Adds the options of `ShortlistRequest` to a command, and passes them on as `shortlist`."""


def export_options(precisions: str) -> Decorator:
    """Adds the options of `ExportRequest` to a command, by default with these precisions, as `request`."""
    return options_of(
        ExportRequest,
        "request",
        click.option(
            "--precisions",
            default=precisions,
            show_default=True,
            callback=_parse_precisions,
            help="Which graphs to make: fp32, int8 (for CPUs), fp16 (for GPUs), with commas between.",
        ),
        shortlist_options,
        click.option(
            "--check-text",
            metavar="FILE",
            type=FILE,
            help="Source sentences, one a line, on which the graphs of lower precisions are held against "
            "the model itself.  [default: those of the training corpus or --shortlist-text, or else "
            "samples of the model's own]",
        ),
        click.option(
            "--max-memory",
            metavar="GB",
            type=click.FloatRange(min=0, min_open=True),
            help="Refuse a model whose export would take more.  [default: what is available]",
        ),
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            help="Threads of PyTorch and onnxruntime.  [default: OMP_NUM_THREADS, or the processors "
            "that this process may use, at most 4]",
        ),
        click.option("--force", is_flag=True, help="Replace a bundle that is already there."),
    )
