"""A bundle is copied under another name, and one whose folder was renamed is told how it is put right."""

import shutil
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from click.testing import CliRunner
from dragoman_bundle import BundleError, open_bundle
from dragoman_bundle.cli import copy, list_bundles
from dragoman_bundle.writer import copy_bundle
from tests.bundle.conftest import reseal

import dragoman.cli.models as models_command


def test_a_copy_is_a_whole_bundle_of_its_own_name(bundle_folder: Path, tmp_path: Path) -> None:
    new = tmp_path / "models" / "legal" / "7"
    done = CliRunner().invoke(copy, [str(bundle_folder), str(new)])
    assert done.exit_code == 0, done.output
    old, copied = open_bundle(bundle_folder).manifest, open_bundle(new).manifest
    assert (old.key, copied.key) == ("de-en/1", "legal/7")
    assert copied.checksum() == old.checksum()
    assert copied.quality == old.quality


def test_the_card_of_a_copy_has_its_name(bundle_folder: Path, tmp_path: Path) -> None:
    # As a card begins that export wrote.
    (bundle_folder / "README.md").write_text("# de-en, version 1\n\nGood.\n")
    reseal(bundle_folder)
    copied = copy_bundle(bundle_folder, tmp_path / "legal" / "7")
    assert (copied.path / "README.md").read_text() == "# legal, version 7\n\nGood.\n"


def test_a_renamed_folder_is_told_how_and_put_right_in_place(bundle_folder: Path) -> None:
    models = bundle_folder.parent.parent
    renamed = models / "legal" / "2"
    shutil.copytree(bundle_folder, renamed)
    found = dict(list_bundles(models))
    assert found["de-en/1"] == ""
    assert f"`dragoman models copy {renamed} {renamed} --force`" in found["legal/2"]
    done = CliRunner().invoke(copy, [str(renamed), str(renamed), "--force"])
    assert done.exit_code == 0, done.output
    assert dict(list_bundles(models)) == {"de-en/1": "", "legal/2": ""}


def test_nothing_is_copied_that_does_not_check_out_or_over_another(bundle_folder: Path) -> None:
    with pytest.raises(BundleError, match="--force"):
        copy_bundle(bundle_folder, bundle_folder)
    with pytest.raises(BundleError, match="name is 'a b'"):
        copy_bundle(bundle_folder, bundle_folder.parent.parent / "a b" / "1")
    (bundle_folder / "shared.spm").write_bytes(b"x")
    with pytest.raises(BundleError, match=r"shared\.spm"):
        copy_bundle(bundle_folder, bundle_folder.parent / "2")
    assert not (bundle_folder.parent / "2").exists()


def test_the_command_lists_a_folder_and_copies(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As pyproject.toml registers them.
    registered = {
        name: EntryPoint(name, f"dragoman_bundle.cli:{attr} [server]", models_command.BUNDLES)
        for name, attr in (("copy", "copy"), ("list", "list_bundles"))
    }

    def entry_points(*, group: str, name: str | None = None) -> EntryPoints:
        return EntryPoints(registered.values()).select(**({"name": name} if name else {}))

    monkeypatch.setattr(models_command, "entry_points", entry_points)
    models = bundle_folder.parent.parent
    runner = CliRunner()
    done = runner.invoke(models_command.models, ["copy", str(bundle_folder), str(models / "de-en" / "2")])
    assert done.exit_code == 0, done.output
    done = runner.invoke(models_command.models, ["--folder", str(models)])
    assert (done.exit_code, done.output) == (0, "de-en/1  ok\nde-en/2  ok\n")
    (bundle_folder / "shared.spm").unlink()
    done = runner.invoke(models_command.models, ["--folder", str(models)])
    assert done.exit_code == 1
    assert "shared.spm is missing" in done.output
