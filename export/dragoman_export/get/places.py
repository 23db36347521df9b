"""Where models are looked for, and which of them are here already."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
