"""Copies a bundle under another name or version: its manifest says so, and all else stays what it was."""

import shutil
from dataclasses import replace
from pathlib import Path

from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.errors import BundleError
from dragoman_bundle.manifest import CARD_FILE, FORMAT_VERSION, Manifest
from dragoman_bundle.names import check_name
from dragoman_bundle.writer import seal, staged_bundle


def copy_bundle(old: Path, new: Path, *, overwrite: bool = False) -> Bundle:
    """Copies a bundle to NAME/VERSION, by which the copy is called, and opens it.

    The old one's folder may be called otherwise than its manifest says. Only files that the manifest lists
    are copied. Raises BundleError where the old one does not check out, where a model can't be called like
    the new folder, or where that holds something and `overwrite` is not set.
    """
    old, new = Path(old).absolute(), Path(new).absolute()
    name, version = new.parent.name, new.name
    check_name("name", name)
    check_name("version", version)
    manifest = open_bundle(old).manifest
    # What is written has the keys of today's format.
    called = replace(manifest, format_version=FORMAT_VERSION, name=name, version=version)
    with staged_bundle(new, overwrite=overwrite) as staging:
        for file in manifest.files:
            (staging / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(old / file, staging / file)
        card = staging / CARD_FILE
        if card.is_file():
            text = card.read_text(encoding="utf-8")
            head = f"# {manifest.name}, version {manifest.version}\n"
            if text.startswith(head):
                card.write_text(f"# {name}, version {version}\n{text.removeprefix(head)}", encoding="utf-8")
        seal(staging, called)
    return open_bundle(new)


def check_folder_name(path: Path, manifest: Manifest) -> None:
    """Raises BundleError, with the way out, where a bundle's folder is not called as the bundle is."""
    if f"{path.parent.name}/{path.name}" != manifest.key:
        raise BundleError(
            f"{path}: its manifest calls it {manifest.key}; its folder must be called so too. "
            f"`dragoman models copy {path} {path} --force` calls the bundle as its folder is"
        )
