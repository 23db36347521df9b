"""A bundle appears whole or not at all."""

from pathlib import Path

import pytest
from dragoman_bundle import BundleError, Manifest, open_bundle
from dragoman_bundle.writer import seal, staged_bundle


def test_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> None:
        with staged_bundle(tmp_path / "models" / "1") as folder:
            (folder / "half.onnx").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list((tmp_path / "models").iterdir()) == []


def test_folder_that_holds_something_is_not_overwritten_unasked(bundle_folder: Path) -> None:
    with pytest.raises(BundleError, match=r"holds a bundle.*--force"), staged_bundle(bundle_folder):
        pytest.fail("the block must not run")


def test_folder_that_holds_no_bundle_is_never_overwritten(bundle_folder: Path) -> None:
    models = bundle_folder.parent
    before = sorted(models.rglob("*"))
    with pytest.raises(BundleError, match="is no bundle"), staged_bundle(models, overwrite=True):
        pytest.fail("the block must not run")
    assert sorted(models.rglob("*")) == before


def test_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    with staged_bundle(tmp_path / "1") as folder:
        (folder / "file").write_bytes(b"content")
    assert (tmp_path / "1" / "file").read_bytes() == b"content"


def test_overwriting_replaces_the_whole_folder(bundle_folder: Path) -> None:
    with staged_bundle(bundle_folder, overwrite=True) as folder:
        (folder / "new").write_bytes(b"new")
    assert [path.name for path in bundle_folder.iterdir()] == ["new"]
    assert [path.name for path in bundle_folder.parent.iterdir()] == [bundle_folder.name]


def test_a_bundle_is_replaced_from_inside(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundle_folder)
    with staged_bundle(Path(), overwrite=True) as folder:
        (folder / "new").write_bytes(b"new")
    assert [path.name for path in bundle_folder.iterdir()] == ["new"]


def test_failed_overwrite_keeps_the_old_bundle(bundle_folder: Path) -> None:
    def failing() -> None:
        with staged_bundle(bundle_folder, overwrite=True) as folder:
            (folder / "new").write_bytes(b"new")
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        failing()
    open_bundle(bundle_folder)
    assert [path.name for path in bundle_folder.parent.iterdir()] == [bundle_folder.name]


def test_seal_lists_every_file_but_the_manifest(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "fp32").mkdir()
    (tmp_path / "fp32" / "encoder.onnx").write_bytes(b"graph")
    seal(tmp_path, manifest)
    resealed = seal(tmp_path, manifest)
    assert list(resealed.files) == ["fp32/encoder.onnx"]
    assert Manifest.from_json((tmp_path / "manifest.json").read_text()) == resealed
