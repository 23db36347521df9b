"""Writes a bundle so that a reader sees all of it or nothing; and copies one under another name or version.

A bundle is built in a hidden folder beside its place and renamed to it once every byte is on the disk.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.checked_files import sha256_of
from dragoman_bundle.errors import BundleError, check_name
from dragoman_bundle.manifest import CARD_FILE, FORMAT_VERSION, MANIFEST_FILE, FileEntry, Manifest


@contextmanager
def staged_bundle(destination: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder that becomes `destination` when the block ends, and vanishes when it raises.

    Raises BundleError, before the block runs, where `destination` holds something: a bundle, unless
    `overwrite` is set, and anything else in any case.
    """
    destination = Path(os.path.abspath(destination))  # "." and ".." have no names of their own.
    is_free = not destination.exists() or (destination.is_dir() and not any(destination.iterdir()))
    if not is_free:
        if not (destination / MANIFEST_FILE).is_file():
            raise BundleError(f"{destination} exists and is no bundle; name a folder NAME/VERSION for one")
        if not overwrite:
            way_out = "choose another version, or replace it with --force"
            raise BundleError(f"{destination} holds a bundle; {way_out}")
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=destination.parent))
    try:
        staging.chmod(0o755)
        yield staging
        _sync(staging)
        _put_in_place(staging, destination)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def changed_bundle(folder: Path) -> Iterator[Path]:
    """A copy of a bundle, in a temporary folder, that takes its place when the block ends, as a new one."""
    with staged_bundle(folder, overwrite=True) as staging:
        shutil.copytree(folder, staging, dirs_exist_ok=True)
        yield staging


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Writes manifest.json beside the files in `folder`, with their sizes and sha256s, and returns it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST_FILE)
    files = {
        path.relative_to(folder).as_posix(): FileEntry(sha256=sha256_of(path), size=path.stat().st_size)
        for path in paths
    }
    sealed = replace(manifest, files=files)
    (folder / MANIFEST_FILE).write_text(sealed.to_json(), encoding="utf-8")
    return sealed


def _sync(folder: Path) -> None:
    """Puts every file and folder on the disk, so that the rename never outruns the bytes."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _put_in_place(staging: Path, destination: Path) -> None:
    if not destination.exists():
        staging.rename(destination)
        return
    # A folder can't be renamed over one that holds files: the old one steps aside, and back if need be.
    aside = staging.with_name(staging.name + ".old")
    destination.rename(aside)
    try:
        staging.rename(destination)
    except OSError:
        aside.rename(destination)
        raise
    shutil.rmtree(aside, ignore_errors=True)


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
