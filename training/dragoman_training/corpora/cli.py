"""`dragoman corpora`: training text of the corpora in a folder, for both directions."""

from pathlib import Path

import click


@click.command()
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the corpora, of which those are read that are there.",
)
@click.option("--from", "source", default="de", show_default=True, help="Source language.")
@click.option("--to", "target", default="en", show_default=True, help="Target language. One of both is en.")
@click.option("--both", is_flag=True, help="Write the other direction too.")
@click.option(
    "--with",
    "optional",
    multiple=True,
    help="Also translate into the texts of this corpus, such as mdn. Repeatable.",
)
@click.option("--without", multiple=True, help="Leave this corpus out, such as docs-gnome. Repeatable.")
@click.option(
    "--leave-out",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Leave out pairs with a line of this file, or a field of it between tabs or bars. Repeatable.",
)
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write to."
)
def corpora(
    data: Path,
    source: str,
    target: str,
    both: bool,
    optional: tuple[str, ...],
    without: tuple[str, ...],
    leave_out: tuple[Path, ...],
    out: Path,
) -> None:
    """Make training text of corpora.

    Markup is taken off, pieces of sentences, unequal pairs and whatever stands in a test set are left out,
    and entries of dictionaries, names, numbers and dates become pairs. Of each direction OUT/de-en has train,
    valid and ui-heldout files, samples of each kind, and a report of what was left out and why. The same
    corpora give the same files.

    \b
    Examples:
      dragoman corpora --data data --from de --to en --both --out data/general
      dragoman corpora --data data --from en --to fr --out data/general
    """
    from rich.console import Console

    from dragoman_training.corpora.prepared import Prepared
    from dragoman_training.corpora.tables import sources, words
    from dragoman_training.corpora.writing import write

    report = Console(stderr=True, highlight=False).print
    if (source == "en") == (target == "en"):
        wanted = "one of both languages, and not the other, is en"
        raise click.UsageError(f"--from {source} --to {target}: {wanted}")
    language = target if source == "en" else source
    if language not in (known := words()["stop_words"]):
        raise click.UsageError(f"{language} is none of {', '.join(sorted(known))}")
    names = {one.name for one in sources()} | {"wiktionary"}
    if unknown := {*optional, *without} - names:
        raise click.UsageError(f"{', '.join(sorted(unknown))} is none of {', '.join(sorted(names))}")
    prepared = Prepared(data, language, without=set(without), leave_out=leave_out, report=report)
    for into_english in [True, False] if both else [target == "en"]:
        write(prepared, set(optional), out, report, into_english=into_english)
