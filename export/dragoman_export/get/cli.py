"""`dragoman get`: models that others trained, by languages, by names in a registry, or from here."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_export.get.download import DownloadError, fetch, progress_shown, read_url
from dragoman_export.get.places import Places
from dragoman_export.get.registry import (
    ADDRESSES,
    OFFER_FILE,
    PAIR,
    Offer,
    RegistryError,
    kept_offers,
    offers,
)
from dragoman_export.importers.reading import Reading, kind_of, lexicon_of
from dragoman_export.options import (
    FILE,
    NEW_FOLDER,
    ExportRequest,
    Report,
    check_folder,
    export_options,
    options_of,
)

if TYPE_CHECKING:
    from dragoman_bundle.bundle import Bundle

    from dragoman_export.model import Subject


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
    type=NEW_FOLDER,
    callback=check_folder,
    help="The bundle's folder; its last two parts are the model's name and version.  [default: in --models, "
    "called by the languages and the registry's version]",
)
@options_of(
    Places,
    "places",
    click.option("--models", default="models", show_default=True, type=NEW_FOLDER, help="Folder of bundles."),
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
        type=NEW_FOLDER,
        help="Folder that downloads are kept in.  [default: they are removed once there is a bundle]",
    ),
    click.option("--offline", is_flag=True, help="Take all from --cache, as an earlier run has left it."),
)
@options_of(
    Reading,
    "reading",
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
        type=FILE,
        help="Of a model of CTranslate2's or Marian's, the sentencepiece model, or that of the source.  "
        "[default: what lies in the folder]",
    ),
    click.option("--target-tokenizer", metavar="FILE", type=FILE, help="The target's, where it is another."),
    click.option(
        "--max-unpacked-size",
        metavar="MB",
        default=Reading.max_unpacked_size,
        show_default=True,
        type=click.IntRange(min=1),
        help="Most that an archive such as an .argosmodel may unpack to.",
    ),
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
            offer = None if _is_path(spec) else places.find(spec)
        except (RegistryError, DownloadError) as error:
            raise click.ClickException(str(error)) from error
        place = out
        if offer is not None:
            if offer.source and not (reading.source_language or reading.target_language):
                place = out or places.models.absolute() / f"{offer.source}-{offer.target}" / offer.version
            if place is not None and place.exists() and not request.force:
                click.echo(f"{offer.spec}: {place} is there; --force gets it again", err=True)
                continue
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

    def make(report: Report) -> "Bundle":
        from dragoman_export.assembly import WITHOUT_PYTORCH, check_memory, export_subject
        from dragoman_export.parity.sentences import CheckText

        path = Path(spec)
        if offer is not None and folder is not None:
            path = _download(offer, folder, is_offline=places.offline)
        text = request.text()
        check_memory([path], request.available_memory(), WITHOUT_PYTORCH)
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
            shortlist = replace(shortlist, shortlist_lexicon=lexicon_of(path))
        called = f"{subject.source_language}-{subject.target_language}"
        if subject.languages:
            name = spec.rpartition("/")[2] if offer else path.resolve().name
            called = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        pair = places.models.absolute() / called
        target = place or (_next_version(pair) if offer is None else pair / offer.version)
        build = None
        if shortlist.has_files:
            if subject.languages:
                raise ValueError("a shortlist is of two languages, and this model of many: leave it out")
            build = shortlist.builder(subject, report)
            subject = subject.telling(shortlist.command_line())
            if text is None and shortlist.shortlist_text is not None:
                text = CheckText.read(shortlist.shortlist_text[0])
        return export_subject(
            subject,
            target,
            precisions=request.precisions,
            overwrite=request.force,
            build_shortlist=build,
            check_text=text,
            report=report,
        )

    bundle = request.run(make)
    if folder is not None and places.cache is None:
        shutil.rmtree(folder, ignore_errors=True)
    return bundle


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
    with progress_shown() as progress:
        for file in offer.files:
            if is_offline and not (folder / file.name).is_file():
                raise RegistryError(
                    f"{folder} lacks {file.name}; get {offer.spec} once with --cache and a network"
                )
            fetch(file, folder, progress)
    # Written last: what has it is whole.
    (folder / OFFER_FILE).write_text(offer.to_json())
    return folder / offer.files[0].name if len(offer.files) == 1 else folder


def _list(places: Places, source: str, target: str) -> None:
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
