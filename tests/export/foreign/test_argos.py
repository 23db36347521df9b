"""Packages of Argos Translate become bundles."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dragoman_bundle import open_bundle
from tests.export.ctranslate2_model import ARGOS_METADATA, pack, write_package
from tests.export.foreign.forced import imported

from dragoman_export.get.cli import get
from dragoman_export.importers.argos import load_ctranslate2
from dragoman_export.importers.files import FormatError


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
    folder = tmp_path / "models" / "de-en" / "1"
    arguments = [str(archive), "--out", str(folder), "--precisions", "fp32"]
    result = CliRunner().invoke(get, arguments)
    assert result.exit_code == 0, result.output
    bundle = open_bundle(folder)
    manifest = bundle.manifest
    assert (manifest.source_language, manifest.target_language, manifest.licence) == ("de", "en", "CC0")
    assert (manifest.decoding.beam_size, manifest.decoding.length_penalty) == (4, 0.2)
    assert bundle.source_tokenizer.encode_ids(["abj"])[0][-3:] == [3, 4, 12]
    card = (folder / "README.md").read_text()
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


def test_languages_may_be_given_otherwise(package: Path) -> None:
    subject = load_ctranslate2(package, target_language="en-GB")
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
    arguments = [str(tmp_path / "m.argosmodel"), "--out", str(tmp_path / "o" / "1")]
    result = CliRunner().invoke(get, arguments)
    assert result.exit_code == 1
    assert "is no ZIP archive, or is damaged" in result.output
    assert not (tmp_path / "o").exists()


def test_a_package_larger_than_allowed_is_refused(package: Path, tmp_path: Path) -> None:
    archive = pack(package, tmp_path / "large.argosmodel")
    with pytest.raises(FormatError, match="are allowed; allow more with --max-unpacked-size"):
        load_ctranslate2(archive, max_bytes=2000)


def test_a_package_has_its_tokenizer(package: Path) -> None:
    with pytest.raises(FormatError, match="is a package of Argos, which has its tokenizer; give none"):
        load_ctranslate2(package, source_tokenizer=package / "sentencepiece.model")
