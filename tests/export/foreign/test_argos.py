"""Packages of Argos Translate become bundles; archives are unpacked where they should be, or not at all."""

import json
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.export.commands import got, refusal
from tests.export.ctranslate2_model import ARGOS_METADATA, pack, write_package
from tests.export.foreign.imported import imported

from dragoman_export.importers.ctranslate2 import load_ctranslate2, unpack
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.reading import Reading


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in a package."""
    return write_package(tmp_path_factory.mktemp("package") / "translate-de_en-1_3")


def changed(package: Path, tmp_path: Path, **changes: Any) -> Path:
    """A copy with other metadata."""
    folder = shutil.copytree(package, tmp_path / "changed")
    (folder / "metadata.json").write_text(json.dumps(ARGOS_METADATA | changes))
    return folder


def test_a_package_becomes_a_bundle(package: Path, tmp_path: Path) -> None:
    archive = pack(package, tmp_path / "translate-de_en-1_3.argosmodel")
    bundle = got(archive, tmp_path / "models" / "de-en" / "1", "--precisions", "fp32")
    manifest = bundle.manifest
    assert (manifest.source_language, manifest.target_language, manifest.licence) == ("de", "en", "CC0")
    assert (manifest.decoding.beam_size, manifest.decoding.length_penalty) == (4, 0.2)
    assert bundle.source_tokenizer.encode_ids(["abj"])[0][-3:] == [3, 4, 12]
    card = (bundle.path / "README.md").read_text()
    assert "A package of Argos Translate, translate-de_en-1_3.argosmodel, version 1.3." in card
    assert "dragoman get translate-de_en-1_3.argosmodel \\\n  --out" in card
    assert "here by ((5 + length) / 6)^a" in card


def test_unpacked_it_is_read_as_well(package: Path, tmp_path: Path) -> None:
    subject = load_ctranslate2(package)
    # Where Argos Translate would take the source's word, nothing stands for it.
    assert subject.target_tokenizer.unk_id in imported(subject).architecture.never_produced
    assert (subject.source_language, subject.target_language) == ("de", "en")
    flat = tmp_path / "flat.argosmodel"
    Path(shutil.make_archive(str(tmp_path / "flat"), "zip", package)).rename(flat)
    assert load_ctranslate2(flat).target_language == "en"
    # Languages may be given otherwise.
    subject = load_ctranslate2(package, Reading(target_language="en-GB"))
    assert (subject.source_language, subject.target_language) == ("de", "en-GB")
    assert "--target-language en-GB" in subject.training


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"from_code": ""}, "has no from_code; give the source language with --source-language"),
        ({"to_code": 7}, "has no to_code; give the target language with --target-language"),
        ({"type": "sbd"}, "is a package of type 'sbd', and not of a translation"),
        ({"target_prefix": "__en__"}, r"begins every translation with '__en__' \(target_prefix\)"),
    ],
)
def test_metadata_that_is_of_something_else_is_refused(
    package: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        load_ctranslate2(changed(package, tmp_path, **changes))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("metadata.json", "has 0 files metadata.json; a package of Argos has one"),
        ("sentencepiece.model", "has no sentencepiece.model, which a package of Argos has"),
        ("model/model.bin", r"model/model.bin can't be read: No such file"),
    ],
)
def test_a_file_that_is_missing_is_named_as_it_is_in_the_package(
    package: Path, tmp_path: Path, missing: str, message: str
) -> None:
    folder = shutil.copytree(package, tmp_path / "changed")
    (folder / missing).unlink()
    archive = pack(folder, tmp_path / "broken.argosmodel")
    with pytest.raises(FormatError, match=message) as raised:
        load_ctranslate2(archive)
    assert "dragoman-argos" not in str(raised.value)
    assert "broken.argosmodel" in str(raised.value)


def test_a_file_that_is_no_archive_is_refused_and_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "m.argosmodel").write_bytes(b"PK\x03\x04 and so on")
    assert "is no ZIP archive, or is damaged" in refusal(tmp_path / "m.argosmodel", tmp_path / "o" / "1")


def test_a_package_has_its_tokenizer_and_is_not_larger_than_allowed(package: Path, tmp_path: Path) -> None:
    archive = pack(package, tmp_path / "large.argosmodel")
    with pytest.raises(FormatError, match="are allowed; allow more with --max-unpacked-size"):
        load_ctranslate2(archive, Reading(max_unpacked_size=0))
    with pytest.raises(FormatError, match="is a package of Argos, which has its tokenizer; give none"):
        load_ctranslate2(package, Reading(source_tokenizer=package / "sentencepiece.model"))


def write_zip(path: Path, content: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def unpack_all(archive: Path, folder: Path, max_bytes: int = 10_000_000) -> None:
    unpack(archive, folder, is_wanted=lambda path: path.name != "unwanted", max_bytes=max_bytes)


def test_what_is_wanted_is_unpacked(tmp_path: Path) -> None:
    content = {"m/a": b"one", "m/deep/b": b"two" * 1000, "m/unwanted": b"three"}
    unpack_all(write_zip(tmp_path / "a.zip", content), tmp_path / "out")
    found = {path.relative_to(tmp_path / "out"): path.read_bytes() for path in tmp_path.glob("out/**/[ab]")}
    assert found == {Path("m/a"): b"one", Path("m/deep/b"): b"two" * 1000}
    assert not list(tmp_path.glob("out/**/unwanted"))


@pytest.mark.parametrize(
    "name", ["../x", "m/../../x", "/x", "C:x", "m\\..\\x", "m/a\nb", "//x", "m/unwanted/../x"]
)
def test_a_path_that_leads_out_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"m/a": b"one", "m/longer-than-any-of-the-names": b"two"})
    # As no library would write it.
    raw = archive.read_bytes()
    place = b"m/longer-than-any-of-the-names"
    archive.write_bytes(raw.replace(place, name.encode().ljust(len(place), b"x")))
    with pytest.raises(FormatError, match=r"leads out of the archive|no ZIP archive"):
        unpack_all(archive, tmp_path / "deep" / "out")
    assert sorted(tmp_path.rglob("*")) == [archive]


def test_a_link_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("m/link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(FormatError, match="'m/link' leads out"):
        unpack_all(tmp_path / "a.zip", tmp_path / "out")


def test_more_than_is_allowed_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    content = {"a": bytes(600_000), "b": bytes(600_000)}
    archive = write_zip(tmp_path / "a.zip", content, zipfile.ZIP_STORED)
    with pytest.raises(FormatError, match=r"unpacks to 1 MB, and 1 MB are allowed; .*--max-unpacked-size"):
        unpack_all(archive, tmp_path / "out", max_bytes=1_000_000)
    assert not (tmp_path / "out").exists()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"a": bytes(5_000_000)})
    with pytest.raises(FormatError, match=r"a is said to unpack from .* bytes to 5000000; more than 100"):
        unpack_all(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("told", [10, 5_000, 200_000])
def test_a_size_that_is_a_lie_is_found_out(told: int, tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"a": np.random.default_rng(1).bytes(100_000)})
    archive.write_bytes(archive.read_bytes().replace(struct.pack("<I", 100_000), struct.pack("<I", told)))
    with pytest.raises(FormatError, match=r"damaged: Bad CRC|is said to have 200000 bytes, and has 100000"):
        unpack_all(archive, tmp_path / "out")
    assert sum(path.stat().st_size for path in tmp_path.glob("out/*")) <= max(told, 100_000)


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"m/a": b"one", "m/b": b"two"})
    archive.write_bytes(archive.read_bytes().replace(b"m/b", b"m/a"))
    with pytest.raises(FormatError, match="holds 'm/a' 2 times"):
        unpack_all(archive, tmp_path / "out")


def test_a_file_that_is_a_folder_too_is_refused(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", {"m": b"one", "m/b": b"two"})
    with pytest.raises(FormatError, match="can't be unpacked to"):
        unpack_all(archive, tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_whose_bytes_changed_is_unpacked_or_refused(method: int, tmp_path: Path) -> None:
    content = {"m/a": b"some words " * 30, "m/b": b"and others " * 30}
    whole = np.frombuffer(write_zip(tmp_path / "a.zip", content, method).read_bytes(), np.uint8)
    generator = np.random.default_rng(7)
    refused = 0
    for number in range(100):
        damaged = whole.copy()
        places = generator.integers(0, len(damaged), 4)
        damaged[places] = generator.integers(0, 256, 4)
        (tmp_path / "a.zip").write_bytes(damaged.tobytes())
        try:
            unpack_all(tmp_path / "a.zip", tmp_path / str(number))
        except FormatError:
            refused += 1
    assert refused > 50
    for length in range(0, len(whole), 7):
        (tmp_path / "a.zip").write_bytes(whole[:length].tobytes())
        with pytest.raises(FormatError, match="is no ZIP archive, or is damaged"):
            unpack_all(tmp_path / "a.zip", tmp_path / "out")
