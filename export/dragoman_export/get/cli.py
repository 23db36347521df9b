"""`dragoman get`: models that others trained, by languages, by names in a registry, or from here."""

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from dragoman_export.get.download import DownloadError, fetch, read_url
from dragoman_export.get.registry import (
    ADDRESSES,
    OFFER_FILE,
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
from dragoman_export.options import ExportRequest, check_folder, export_options, options_of

if TYPE_CHECKING:
    from dragoman_bundle.bundle import Bundle

    from dragoman_export.subject import Subject

DOWNLOADS = ".downloads"
"""The folder, among models, of what is being downloaded; servers look at no name with a dot."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SECONDS_PER_LINE = 5.0


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
            from dragoman_export.from_ctranslate2 import load_ctranslate2

            return load_ctranslate2(
                path,
                source_language=self.source_language,
                target_language=self.target_language,
                source_tokenizer=self.source_tokenizer,
                target_tokenizer=self.target_tokenizer,
                max_bytes=self.max_unpacked_size * 1_000_000,
            )
        if kind == "marian":
            from dragoman_export.from_marian import import_marian

            return import_marian(
                path,
                source_language=self.source_language,
                target_language=self.target_language,
                source_tokenizer=self.source_tokenizer,
                target_tokenizer=self.target_tokenizer,
            )
        from dragoman_export.from_hf import load_marian

        return load_marian(
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
            raise RegistryError(f"{self.downloads} has no {spec}; it has {_names(found)}")
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
            if f"({spec})" in manifest.credit or pair == (manifest.source_language, manifest.target_language):
                return manifest.key
        return None


@click.command()
@click.argument("specs", metavar="MODEL...", nargs=-1)
@click.option("--list", "lists", is_flag=True, help="List what there is instead, of all registries.")
@click.option("--from", "source", default="", metavar="LANG", help="With --list, from this language alone.")
@click.option("--to", "target", default="", metavar="LANG", help="With --list, to this language alone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--missing",
    is_flag=True,
    help="Leave out what the models folder has a bundle for; asks no registry then.",
)
@click.option(
    "--out",
    metavar="models/NAME/VERSION",
    type=click.Path(file_okay=False, path_type=Path),
    callback=check_folder,
    help="The bundle's folder; its last two parts are the model's name and version.  [default: in --models, "
    "called by the languages and the registry's version]",
)
@options_of(
    Places,
    "places",
    [
        click.option(
            "--models",
            default="models",
            show_default=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="Folder of bundles.",
        ),
        click.option(
            "--mirror",
            metavar="URL",
            envvar="DRAGOMAN_MIRROR",
            show_envvar=True,
            help="Address that has the registries below it, as /firefox/, /argos/ and /hf/.",
        ),
        click.option(
            "--cache",
            metavar="DIR",
            envvar="DRAGOMAN_CACHE",
            show_envvar=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="Folder that downloads are kept in.  [default: they are removed once there is a bundle]",
        ),
        click.option("--offline", is_flag=True, help="Take all from --cache, as an earlier run has left it."),
    ],
)
@options_of(
    Reading,
    "reading",
    [
        click.option("--source-language", help="Of a model whose files do not say it."),
        click.option("--target-language", help="Of a model whose files do not say it."),
        click.option(
            "--language-token",
            metavar="'>>CODE<<'",
            help="Of a model of Hugging Face's with several target languages: what every sentence begins "
            "with, for a bundle that translates to one of them.",
        ),
        click.option(
            "--source-tokenizer",
            metavar="FILE",
            type=_FILE,
            help="Of a model of CTranslate2's or Marian's, the sentencepiece model, or that of the source.  "
            "[default: what lies in the folder]",
        ),
        click.option(
            "--target-tokenizer",
            metavar="FILE",
            type=_FILE,
            help="The target's, where it is another.",
        ),
        click.option(
            "--max-unpacked-size",
            metavar="MB",
            default=4000,
            show_default=True,
            type=click.IntRange(min=1),
            help="Most that an archive such as an .argosmodel may unpack to.",
        ),
    ],
)
@export_options("int8")
def get(
    *,
    specs: tuple[str, ...],
    lists: bool,
    source: str,
    target: str,
    yes: bool,
    missing: bool,
    out: Path | None,
    places: Places,
    reading: Reading,
    request: ExportRequest,
) -> None:
    """Get models that others trained, and make bundles of them that can be served.

    MODEL is a pair of languages, such as de-en: the best for a CPU, Firefox's or else OPUS-MT's or Argos
    Translate's. Or a name in a registry, such as hf:Helsinki-NLP/opus-mt-fr-en, argos:fr-en or firefox:fr-en.
    Or a file or folder that is here: MarianMT's in Hugging Face's form, Marian's own .npz, Firefox's .bin,
    CTranslate2's, an .argosmodel.

    What was cut off goes on when the same command is called again. Checksums are verified, where a registry
    has them, and no bundle is written unless its graphs decode as the model does. A running server takes new
    bundles at SIGHUP.

    \b
    Examples:
      dragoman get de-en
      dragoman get --list --from de
      dragoman get hf:Helsinki-NLP/opus-mt-en-ROMANCE --target-language fr --language-token '>>fr<<'
      dragoman get translate-en_de-1_3.argosmodel --shortlist-text some.en some.de
      dragoman get FOLDER --source-language de --target-language en --source-tokenizer spm.model
    """
    if lists:
        _list(places, source, target)
        return
    if not specs:
        raise click.UsageError("name a MODEL, such as de-en, or give --list")
    if out is not None and len(specs) > 1:
        raise click.UsageError(f"--out is of one model, and there are {len(specs)}")
    request.shortlist.check(is_foreign=True)
    for spec in specs:
        _check_spec(spec)
    done = []
    for spec in specs:
        if missing and (present := places.present(spec)):
            click.echo(f"{spec}: {present} is there", err=True)
            continue
        try:
            is_path = _is_path(spec)
            offer = None if is_path else places.find(spec)
        except (RegistryError, DownloadError) as error:
            raise click.ClickException(str(error)) from error
        place = out
        if offer is not None and offer.source and not (reading.source_language or reading.target_language):
            place = out or places.models.absolute() / f"{offer.source}-{offer.target}" / offer.version
        if offer is not None and place is not None and place.exists() and not request.force:
            click.echo(f"{offer.spec}: {place} is there; --force gets it again", err=True)
            continue
        if offer is not None:
            click.echo(_description(offer), err=True)
            if not yes:
                click.confirm("Get it?", default=True, abort=True, err=True)
        done.append(_bring(spec, offer, place, places, reading, request))
    if done:
        click.echo(
            "A running server takes it with: kill -HUP PID, or docker compose kill -s HUP dragoman-cpu. Or "
            f"start one: dragoman serve --models {done[-1].path.parent.parent}",
            err=True,
        )


def _check_spec(spec: str) -> None:
    """Raises click.UsageError for what names nothing."""
    registry, mark, _ = spec.partition(":")
    if PAIR.fullmatch(spec) or _is_path(spec) or (mark and registry in ADDRESSES):
        return
    raise click.UsageError(
        f"{spec!r} is neither a pair of languages, such as de-en, nor a name such as "
        "hf:Helsinki-NLP/opus-mt-fr-en, argos:fr-en or firefox:fr-en, nor a file or folder that is here"
    )


def _is_path(spec: str) -> bool:
    """Whether it is what lies here; a folder that is called as a pair is meant by ./de-en."""
    return not PAIR.fullmatch(spec) and Path(spec).exists()


def _bring(
    spec: str,
    offer: Offer | None,
    place: Path | None,
    places: Places,
    reading: Reading,
    request: ExportRequest,
) -> "Bundle":
    """Downloads an offer, or takes what is here, and makes a bundle of it. Raises click.ClickException."""
    folder = None if offer is None else places.downloads / offer.folder

    def make(report: Callable[[str], None]) -> "Bundle":
        from dragoman_export.assembly import export_foreign
        from dragoman_export.memory import check_memory

        path = Path(spec)
        if offer is not None and folder is not None:
            path = _download(offer, folder, is_offline=places.offline)
        text = request.text()
        check_memory([path], request.available_memory())
        report("reading the model")
        read = reading
        if offer is not None and path.is_dir() and kind_of(path) != "hf":
            # The languages are in the name alone.
            read = replace(
                reading,
                source_language=reading.source_language or offer.source,
                target_language=reading.target_language or offer.target,
            )
        subject = read.load(path)
        if offer is not None:
            subject = _attributed(subject, offer, path.resolve().name)
        shortlist = request.shortlist
        if not shortlist.has_files and shortlist.shortlist is None:
            shortlist = replace(shortlist, shortlist_lexicon=_lexicon(path))
        pair = places.models.absolute() / f"{subject.source_language}-{subject.target_language}"
        target = place or (_next_version(pair) if offer is None else pair / offer.version)
        return export_foreign(
            subject,
            target,
            name=target.parent.name,
            version=target.name,
            precisions=request.precisions,
            overwrite=request.force,
            shortlist_files=shortlist.files(),
            shortlist_options=shortlist.options(),
            check_text=text,
            report=report,
        )

    bundle = request.run(make)
    if folder is not None and places.cache is None:
        shutil.rmtree(folder, ignore_errors=True)
    return bundle


def _lexicon(path: Path) -> Path | None:
    """The shortlist that a model of Marian's has beside it."""
    if kind_of(path) != "marian":
        return None
    folder = path if path.is_dir() else path.parent
    return next(iter(sorted(folder.glob("lex*s2t*"))), None)


def _attributed(subject: "Subject", offer: Offer, name: str) -> "Subject":
    """The model under its name in the registry, with what is owed to its makers."""
    card = subject.card
    quality = f" Its makers report {offer.quality}." if offer.quality else ""
    return replace(
        subject,
        training=subject.training.replace(name, offer.spec),
        card=replace(
            card,
            description=card.description.replace(name, offer.spec) + quality,
            data=card.data.replace(name, offer.spec),
            licence=card.licence or offer.licence,
            credit=f"{offer.credit} ({offer.spec})",
        ),
    )


def _next_version(folder: Path) -> Path:
    """The folder of the first number that is higher than every version of a model."""
    numbers = [int(found[0]) for path in folder.glob("[0-9]*") if (found := re.match(r"\d+", path.name))]
    return folder / str(max(numbers, default=0) + 1)


def _download(offer: Offer, folder: Path, *, is_offline: bool) -> Path:
    """All files of an offer; where there is one, its path, else the folder's. Raises ValueError."""
    with _ProgressBar() as bar:
        for file in offer.files:
            if is_offline and not (folder / file.name).is_file():
                raise RegistryError(
                    f"{folder} lacks {file.name}; get {offer.spec} once with --cache and a network"
                )
            fetch(file, folder, bar.show)
    # Written last: what has it is whole.
    (folder / OFFER_FILE).write_text(offer.to_json())
    return folder / offer.files[0].name if len(offer.files) == 1 else folder


class _ProgressBar:
    """How far a download is: bars on a terminal, elsewhere a line now and then."""

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        self._is_terminal = console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, Any] = {}
        self._said_at = 0.0

    def __enter__(self) -> "_ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def show(self, name: str, done: int, total: int | None) -> None:
        """A file has so many bytes now."""
        if self._is_terminal:
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._tasks[name], completed=done, total=total)
            return
        now = time.monotonic()
        if done == total or now - self._said_at >= _SECONDS_PER_LINE:
            self._said_at = now
            of_total = f" of {total / 1e6:.1f}" if total is not None else ""
            click.echo(f"{name}: {done / 1e6:.1f}{of_total} MB", err=True)


def _list(places: Places, source: str, target: str) -> None:
    """Prints what there is, a line each. Raises click.ClickException."""

    def found() -> Iterator[Offer]:
        if places.offline:
            yield from kept_offers(places.downloads)
            return
        for registry, address in places.addresses.items():
            yield from offers(registry, address, read_url, source, target)

    try:
        for offer in found():
            if source in ("", offer.source) and target in ("", offer.target):
                size = "" if offer.size is None else f"{offer.size / 1e6:.1f} MB"
                row = (f"{offer.source}-{offer.target}", offer.spec, offer.version, size, offer.licence)
                click.echo("{:<12} {:<44} {:<28} {:>10}  {}".format(*row).rstrip())
    except (RegistryError, DownloadError) as error:
        raise click.ClickException(str(error)) from error


def _description(offer: Offer) -> str:
    size = "size unknown" if offer.size is None else f"{offer.size / 1e6:.1f} MB to download"
    return (
        f"{offer.spec}, version {offer.version}: {size}; licence: {offer.licence or 'as its files say'}; "
        f"quality: {offer.quality or 'its registry says none'}; by {offer.credit}"
    )


def _names(found: Sequence[Offer]) -> str:
    return ", ".join(offer.spec for offer in found) or "none"
