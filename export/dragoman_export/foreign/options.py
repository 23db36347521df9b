"""Options of `dragoman export` for models from elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dragoman_export.subject import Subject

Command = Callable[..., None]
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """A model from elsewhere, as the command line names it."""

    from_hf: str | None
    from_ctranslate2: Path | None
    source_language: str | None
    target_language: str | None
    language_token: str | None
    source_tokenizer: Path | None
    target_tokenizer: Path | None
    max_unpacked_size: int
    """In MB."""

    @property
    def is_given(self) -> bool:
        """Whether any is."""
        return self.from_hf is not None or self.from_ctranslate2 is not None

    def local_paths(self) -> list[Path]:
        """Where it lies, if that is on this machine and not on a hub."""
        named = [self.from_ctranslate2, self.from_hf and Path(self.from_hf)]
        return [path for path in named if path and path.exists()]

    def check(self) -> None:
        """Raises click.UsageError for options that do not go together."""
        if self.from_hf is not None and self.from_ctranslate2 is not None:
            raise click.UsageError("give either --from-hf or --from-ctranslate2")
        for option, value in (
            ("--source-tokenizer", self.source_tokenizer),
            ("--target-tokenizer", self.target_tokenizer),
        ):
            if value is not None and self.from_ctranslate2 is None:
                raise click.UsageError(f"{option} is for --from-ctranslate2; other models have theirs")
        if self.language_token is not None and self.from_hf is None:
            raise click.UsageError("--language-token is for --from-hf")

    def load(self, available_memory: int | None) -> "Subject":
        """Reads the model. Raises ValueError, as where an export takes more than `available_memory` bytes, or
        click.ClickException where a library is missing.
        """
        if self.from_ctranslate2 is not None:
            from dragoman_export.from_ctranslate2 import load_ctranslate2

            return load_ctranslate2(
                self.from_ctranslate2,
                source_language=self.source_language,
                target_language=self.target_language,
                source_tokenizer=self.source_tokenizer,
                target_tokenizer=self.target_tokenizer,
                max_bytes=self.max_unpacked_size * 1_000_000,
            )
        assert self.from_hf is not None
        try:
            import transformers  # noqa: F401
        except ImportError as error:
            hint = "run `make install` in the source checkout, which brings the extra hf"
            raise click.ClickException(
                f"--from-hf needs {error.name}, which is not installed: {hint}"
            ) from error
        from dragoman_export.from_hf import load_marian

        return load_marian(
            self.from_hf,
            source_language=self.source_language,
            target_language=self.target_language,
            language_token=self.language_token,
            available_memory=available_memory,
        )


def foreign_options(command: Command) -> Command:
    """Adds the options of `Foreign` to a command, and passes them on as `foreign`."""

    @wraps(command)
    def with_foreign(**options: Any) -> None:
        foreign = Foreign(**{field.name: options.pop(field.name) for field in fields(Foreign)})
        command(foreign=foreign, **options)

    decorated: Command = with_foreign
    for decorate in reversed(
        [
            click.option(
                "--from-hf",
                metavar="DIR_OR_NAME",
                help="A MarianMT checkpoint of Hugging Face instead: a folder, or a name on its hub.",
            ),
            click.option(
                "--from-ctranslate2",
                metavar="DIR_OR_FILE",
                type=click.Path(exists=True, path_type=Path),
                help="A Transformer in CTranslate2's format instead: its folder, or an .argosmodel.",
            ),
            click.option("--source-language", help="Of such a model, where its files do not say it."),
            click.option("--target-language", help="Of such a model, where its files do not say it."),
            click.option(
                "--language-token",
                metavar="'>>CODE<<'",
                help="With --from-hf, of a model with several target languages: what every sentence begins "
                "with, for a bundle that translates to one of them.",
            ),
            click.option(
                "--source-tokenizer",
                metavar="FILE",
                type=_FILE,
                help="With --from-ctranslate2, the sentencepiece model, or that of the source.  [default: "
                "what lies in the folder]",
            ),
            click.option(
                "--target-tokenizer",
                metavar="FILE",
                type=_FILE,
                help="With --from-ctranslate2, the target's, where it is another.",
            ),
            click.option(
                "--max-unpacked-size",
                metavar="MB",
                default=4000,
                show_default=True,
                type=click.IntRange(min=1),
                help="Most that an archive such as an .argosmodel may unpack to.",
            ),
        ]
    ):
        decorated = decorate(decorated)
    return decorated
