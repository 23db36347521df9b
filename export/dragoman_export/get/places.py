"""Where models are looked for, which of them are here already, and which form their files are in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_export.get.download import read_url
from dragoman_export.get.registry import (
    ADDRESSES,
    PAIR,
    Address,
    Offer,
    RegistryError,
    kept_offers,
    mirrored,
    offer_of,
    offers,
    pair_of,
)

if TYPE_CHECKING:
    from dragoman_export.model import Subject


DOWNLOADS = ".downloads"
"""The folder, among models, of what is being downloaded; servers look at no name with a dot."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where models are looked for and put."""

    models: Path
    mirror: str | None
    cache: Path | None
    offline: bool

    def __post_init__(self) -> None:
        """Raises click.UsageError for options that do not go together."""
        if self.offline and self.cache is None:
            raise click.UsageError("--offline takes all from --cache; name that folder")

    @property
    def downloads(self) -> Path:
        return self.cache or self.models / DOWNLOADS

    @property
    def addresses(self) -> Mapping[str, Address]:
        return ADDRESSES if self.mirror is None else mirrored(self.mirror)

    def find(self, spec: str) -> Offer:
        """The offer of a name as firefox:de-en, or a pair's best. Raises RegistryError, DownloadError."""
        registry, _, name = spec.rpartition(":")
        if self.offline:
            found = [offer for offer in kept_offers(self.downloads) if registry in ("", offer.registry)]
            for offer in found:
                if name in (offer.name, f"{offer.source}-{offer.target}"):
                    return offer
            names = ", ".join(offer.spec for offer in found)
            raise RegistryError(f"{self.downloads} has no {spec}; it has {names or 'none'}")
        if registry:
            return offer_of(registry, name, self.addresses[registry], read_url)
        pair = PAIR.fullmatch(name)
        assert pair is not None
        for registry in self.addresses:
            for offer in offers(registry, self.addresses[registry], read_url, pair["source"], pair["target"]):
                return offer
        way = f"{pair['source']}-en en-{pair['target']}"
        hint = "" if "en" in pair.groups() else f"; try `dragoman get {way}`, and `dragoman serve --pivot en`"
        raise RegistryError(f"no registry has a model from {pair['source']} to {pair['target']}{hint}")

    def present(self, spec: str) -> str | None:
        """The first bundle here that is of the pair, or of the origin; None where there is none."""
        from dragoman_bundle.bundle import read_manifest
        from dragoman_bundle.errors import ManifestError

        pair = pair_of(spec.rpartition(":")[2])
        for path in sorted(self.models.glob("[!.]*/[!.]*")):
            try:
                manifest = read_manifest(path)
            except (ManifestError, OSError):
                continue
            if f"({spec})" in manifest.credit or (
                pair and pair[0] in manifest.sources and pair[1] in manifest.targets
            ):
                return manifest.key
        return None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the files of a model are read, where they do not say it themselves."""

    source_language: str | None
    target_language: str | None
    language_token: str | None
    source_tokenizer: Path | None
    target_tokenizer: Path | None
    max_unpacked_size: int
    """In MB."""

    def load(self, path: Path) -> "Subject":
        """The model of a file or folder. Raises ValueError."""
        kind = kind_of(path)
        for flag, value, owners in (
            ("--language-token", self.language_token, ("hf",)),
            ("--source-tokenizer", self.source_tokenizer, ("ctranslate2", "marian")),
            ("--target-tokenizer", self.target_tokenizer, ("ctranslate2", "marian")),
        ):
            if value is not None and kind not in owners:
                raise click.UsageError(f"{flag} is not for {path}, a model in the form of {_FORMS[kind]}")
        if kind == "ctranslate2":
            from dragoman_export.importers.argos import load_ctranslate2

            return load_ctranslate2(
                path,
                source_language=self.source_language,
                target_language=self.target_language,
                source_tokenizer=self.source_tokenizer,
                target_tokenizer=self.target_tokenizer,
                max_bytes=self.max_unpacked_size * 1_000_000,
            )
        if kind == "marian":
            from dragoman_export.importers.marian import import_marian

            return import_marian(
                path,
                source_language=self.source_language,
                target_language=self.target_language,
                source_tokenizer=self.source_tokenizer,
                target_tokenizer=self.target_tokenizer,
            )
        from dragoman_export.importers.hf import load_checkpoint

        return load_checkpoint(
            str(path),
            source_language=self.source_language,
            target_language=self.target_language,
            language_token=self.language_token,
        )


_FORMS = {"hf": "Hugging Face", "ctranslate2": "CTranslate2", "marian": "Marian"}


def kind_of(path: Path) -> str:
    """The form of a model's files, by what lies there: a key of `_FORMS`. Raises RegistryError."""
    if path.is_dir():
        if (path / "model.bin").is_file():
            return kind_of(path / "model.bin")
        # A package of Argos has the second, and so have some releases of MarianMT's.
        for name, kind in (("config.json", "hf"), ("metadata.json", "ctranslate2")):
            if (path / name).is_file():
                return kind
        if any(path.glob("*.npz")) or any(path.glob("model*.bin")):
            return "marian"
        raise RegistryError(
            f"{path} holds no model that is known: neither config.json, model.bin, model*.bin nor *.npz"
        )
    with path.open("rb") as file:
        start = file.read(8)
    if path.suffix == ".npz" or start == (1).to_bytes(8, "little"):
        return "marian"
    return "ctranslate2"


def lexicon_of(path: Path) -> Path | None:
    """The shortlist that a model of Marian's has beside it."""
    if kind_of(path) != "marian":
        return None
    folder = path if path.is_dir() else path.parent
    return next(iter(sorted(folder.glob("lex*s2t*"))), None)
