"""How a model from elsewhere is read: which form its files are in, and what is said where they do not say it.

Knows formats by their names alone: what reads one is loaded when it is needed.
"""

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman_export.model import Subject

_FORMS = {"hf": "Hugging Face", "ctranslate2": "CTranslate2", "marian": "Marian"}
_OWNERS = {
    "language_token": ("hf",),
    "source_tokenizer": ("ctranslate2", "marian"),
    "target_tokenizer": ("ctranslate2", "marian"),
}
"""Forms whose models an option is for, where it is not for all."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is given beside a model's files, where they do not say it themselves."""

    source_language: str | None = None
    target_language: str | None = None
    language_token: str | None = None
    """Such as `>>fra<<`: of a model with several target languages it chooses one for good."""
    source_tokenizer: Path | None = None
    """A sentencepiece model; the target's too where that has none of its own."""
    target_tokenizer: Path | None = None
    max_unpacked_size: int = 4000
    """Of an archive, in MB."""

    @property
    def options(self) -> str:
        """What is given as options of `dragoman get`, with a space before each, as a card repeats them; of a
        file its name alone, as the folder that it was in is nobody else's.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)[:-1]}
        texts = {name: value.name if isinstance(value, Path) else value for name, value in given.items()}
        named = ((name.replace("_", "-"), text) for name, text in texts.items() if text)
        return "".join(f" --{name} {shlex.quote(text)}" for name, text in named)

    def load(self, path: Path) -> "Subject":
        """The model of a file or folder. Raises ValueError, and click.UsageError for what is not for it."""
        kind = kind_of(path)
        for name, owners in _OWNERS.items():
            if getattr(self, name) is not None and kind not in owners:
                flag = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{flag} is not for {path}, a model in the form of {_FORMS[kind]}")
        if kind == "ctranslate2":
            from dragoman_export.importers.ctranslate2 import load_ctranslate2 as load
        elif kind == "marian":
            from dragoman_export.importers.marian import load_marian as load
        else:
            from dragoman_export.importers.hf import load_checkpoint as load
        return load(path, self)


def kind_of(path: Path) -> str:
    """The form of a model's files, by what lies there: a key of `_FORMS`. Raises ValueError."""
    if path.is_dir():
        if (path / "model.bin").is_file():
            return kind_of(path / "model.bin")
        # A package of Argos has the second, and so have some releases of MarianMT's.
        for name, kind in (("config.json", "hf"), ("metadata.json", "ctranslate2")):
            if (path / name).is_file():
                return kind
        if any(path.glob("*.npz")) or any(path.glob("model*.bin")):
            return "marian"
        raise ValueError(
            f"{path} holds no model that is known: neither config.json, model.bin, model*.bin nor *.npz"
        )
    with path.open("rb") as file:
        start = file.read(8)
    return "marian" if path.suffix == ".npz" or start == (1).to_bytes(8, "little") else "ctranslate2"


def lexicon_of(path: Path) -> Path | None:
    """The shortlist that a model of Marian's has beside it."""
    if kind_of(path) != "marian":
        return None
    return next(iter(sorted((path if path.is_dir() else path.parent).glob("lex*s2t*"))), None)
