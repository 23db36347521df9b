"""Whatever lies in a bundle's folder, reading it ends: only regular files are read, and no more than fits."""

import io
import os
import socket
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle import BundleError, BundleFileError, ManifestError, ShortlistError, open_bundle
from dragoman_bundle.bundle import MAX_TOKENIZER_BYTES
from dragoman_bundle.checked_files import open_regular, read_regular
from dragoman_bundle.manifest import MAX_MANIFEST_BYTES, ShortlistSpec
from tests.bundle.conftest import GRAPH, reseal
from tests.growth import memory_below

GIB = 1 << 30


def opens_or_hangs(folder: Path) -> BundleError:
    """The error of a bundle that is refused, by a thread that may be left behind."""
    caught: list[BundleError] = []

    def refuse() -> None:
        try:
            open_bundle(folder)
        except BundleError as error:
            caught.append(error)

    thread = threading.Thread(target=refuse, daemon=True)
    thread.start()
    thread.join(60)
    assert caught, "it still waits, or was opened"
    return caught[0]


def bind(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)


NO_FILES = {
    "pipe": (os.mkfifo, ": it is no regular file"),
    "folder": (os.mkdir, ": it is no regular file"),
    "device": (lambda name: os.symlink("/dev/zero", name), ": it is no regular file"),
    "socket": (bind, ""),
    "circle": (lambda name: os.symlink(name, name), ""),
}
"""How each is made, and what is said of it."""


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        *(("pipe", place) for place in ("manifest.json", "shared.spm", "int8/encoder.onnx", "README.md")),
        *(("device", "manifest.json"), ("socket", "manifest.json")),
        *(("folder", "README.md"), ("circle", "README.md")),
    ],
)
def test_what_is_no_regular_file_is_refused_in_its_place(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    path = bundle_folder / place
    path.unlink()
    # A socket's address has to be short.
    monkeypatch.chdir(path.parent)
    make, told = NO_FILES[kind]
    make(path.name)
    assert f"{place} can't be read{told}" in str(opens_or_hangs(bundle_folder))


def test_a_manifest_of_gigabytes_is_refused_before_it_is_read(bundle_folder: Path) -> None:
    os.truncate(bundle_folder / "manifest.json", 3 * GIB)
    told = f"has {3 * GIB} bytes, and at most {MAX_MANIFEST_BYTES} are read"
    with memory_below(MAX_MANIFEST_BYTES), pytest.raises(ManifestError, match=told):
        open_bundle(bundle_folder)


def test_a_tokenizer_of_gigabytes_is_refused_before_it_is_read(bundle_folder: Path) -> None:
    """Its checksum alone takes no memory: where it is right, the size is what is left."""
    path = bundle_folder / "shared.spm"
    os.truncate(path, MAX_TOKENIZER_BYTES + 1)
    reseal(bundle_folder)
    told = rf"shared\.spm has {MAX_TOKENIZER_BYTES + 1} bytes, and no such"
    with memory_below(MAX_TOKENIZER_BYTES), pytest.raises(BundleFileError, match=told):
        open_bundle(bundle_folder)


def with_shortlist(folder: Path, content: bytes) -> Path:
    for precision in ("fp32", "int8"):
        for graph in ("shortlist", "decoder_step_shortlist"):
            (folder / precision / f"{graph}.onnx").write_bytes(GRAPH)
    (folder / "shortlist.npz").write_bytes(content)
    reseal(folder, shortlist=ShortlistSpec(file="shortlist.npz", memory=()))
    return folder


def npz(**arrays: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return packed.getvalue()


def npy(array: np.ndarray, length: int | None = None) -> bytes:
    """An array as numpy writes it, but for the length that it says that it has."""
    file = io.BytesIO()
    shape = array.shape if length is None else (length,)
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


FIRST, ALWAYS = npy(np.zeros(17, np.uint32)), npy(np.array([3], np.uint16))
NOTHING = npy(np.zeros(0, np.uint16))


@pytest.mark.parametrize("name", ["first", "always"])
def test_a_shortlist_that_unpacks_to_much_is_refused_before(bundle_folder: Path, name: str) -> None:
    arrays = {"first": FIRST, "targets": NOTHING, "always": ALWAYS}
    folder = with_shortlist(bundle_folder, npz(**arrays | {name: npy(np.zeros(1 << 23, np.uint32))}))
    told = rf"its {name} unpack to {(1 << 25) + 128} bytes"
    with memory_below(1 << 25), pytest.raises(ShortlistError, match=told):
        open_bundle(folder)


def test_entries_of_gigabytes_are_refused_by_the_size_that_they_say(bundle_folder: Path) -> None:
    content = bytearray(npz(first=FIRST, targets=NOTHING, always=ALWAYS))
    place = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    content[place + 24 : place + 28] = (4 * GIB - 1).to_bytes(4, "little")
    with pytest.raises(ShortlistError, match=f"its targets unpack to {4 * GIB - 1} bytes"):
        open_bundle(with_shortlist(bundle_folder, bytes(content)))


@pytest.mark.parametrize(
    "arrays",
    [
        {"targets": npy(np.zeros(2, np.uint16), length=10**12)},
        {"targets": npy(np.zeros(2, np.uint16), length=-1)},
        {"targets": npy(np.zeros((1, 1), np.uint16))},
        {"targets": npy(np.array([b"x" * 100]))},
        {"targets": b"\x93NUMPY\x03\x00"},
        {"targets": b""},
    ],
)
def test_arrays_that_are_not_what_they_say_are_refused(bundle_folder: Path, arrays: dict[str, bytes]) -> None:
    content = npz(**{"first": FIRST, "always": ALWAYS} | arrays)
    with pytest.raises(ShortlistError):
        open_bundle(with_shortlist(bundle_folder, content))


def test_a_shortlist_whose_table_would_be_huge_is_refused(bundle_folder: Path) -> None:
    """One source token with very many entries would make a column of every one of them."""
    entries = (1 << 23) + 1
    first = np.array([0, *[entries] * 16], np.uint32)
    content = npz(first=npy(first), targets=npy(np.zeros(entries, np.uint8)), always=ALWAYS)
    with pytest.raises(ShortlistError, match=f"has {entries} entries"):
        open_bundle(with_shortlist(bundle_folder, content))


def test_a_file_that_grows_while_it_is_read_is_not_read_on(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, max_bytes=5) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes, and at most 4 are read"):
        read_regular(path, max_bytes=4)
    with open_regular(path) as file:
        assert file.read() == b"12345"
