"""`dragoman models copy` and `dragoman models --folder`: wiring alone."""

from collections.abc import Iterator
from pathlib import Path

import click

from dragoman_bundle.bundle import open_bundle
from dragoman_bundle.errors import BundleError
from dragoman_bundle.writer import check_folder_name, copy_bundle


@click.command()
@click.argument("old", metavar="OLD", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(file_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a bundle that is already there.")
def copy(old: Path, new: Path, force: bool) -> None:
    """Copy a bundle to another NAME/VERSION, by which it is called then.

    Both are folders of bundles. Every file is checked, and the old bundle stays as it is. One whose folder
    was renamed, so that a server refuses it, is put right in its place: OLD and NEW are the same then.

    \b
    Examples:
      dragoman models copy models/de-en/3 models/de-en/4
      dragoman models copy downloads/model models/de-en-legal/1
      dragoman models copy models/renamed/1 models/renamed/1 --force
    """
    try:
        bundle = copy_bundle(old, new, overwrite=force)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{bundle.manifest.key}  {bundle.path}")


def list_bundles(folder: Path) -> Iterator[tuple[str, str]]:
    """NAME/VERSION of each bundle in a folder, with what is wrong with it, or nothing where it checks out.

    Every file is checked, and that the folder is called as the bundle is.
    """
    for path in sorted(path for path in folder.glob("[!.]*/[!.]*") if path.is_dir()):
        try:
            manifest = open_bundle(path).manifest
            check_folder_name(path, manifest)
        except (BundleError, OSError) as error:
            yield f"{path.parent.name}/{path.name}", str(error)
        else:
            yield manifest.key, ""
