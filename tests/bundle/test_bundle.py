"""A bundle round-trips, and one that is damaged in any way is refused with the file and the reason."""

import hashlib
import json
import re
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any

import pytest
from dragoman_bundle import (
    BundleError,
    BundleFileError,
    Manifest,
    ManifestError,
    TokenizerMismatchError,
    open_bundle,
    read_manifest,
)
from dragoman_bundle.bundle import look_at_bundle, read_description
from dragoman_bundle.checked_files import open_regular
from tests.bundle.conftest import GRAPH, reseal

Edit = Callable[[dict[str, Any]], object]


def edit_manifest(folder: Path, edit: Edit) -> None:
    path = folder / "manifest.json"
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def list_file(folder: Path, name: str, content: bytes) -> None:
    """Makes the manifest vouch for `content` under `name`."""
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    edit_manifest(folder, lambda value: value["files"].update({name: entry}))


def test_bundle_round_trips(bundle_folder: Path, manifest: Manifest, tokenizer_model: bytes) -> None:
    bundle = open_bundle(bundle_folder)
    for field in ("name", "contract", "decoding", "quality", "credit", "precisions"):
        assert getattr(bundle.manifest, field) == getattr(manifest, field)
    graphs = {f"{name}/{graph}.onnx" for name in ("fp32", "int8") for graph in ("encoder", "decoder_step")}
    assert set(bundle.manifest.files) == {"README.md", "shared.spm"} | graphs
    assert bundle.source_tokenizer.model == tokenizer_model
    assert bundle.graph_path("int8", "encoder").read_bytes() == GRAPH


def test_absent_precision_is_refused_naming_those_present(bundle_folder: Path) -> None:
    with pytest.raises(BundleError, match="holds no fp16 graphs; it holds fp32, int8"):
        open_bundle(bundle_folder).graph_path("fp16", "encoder")


@pytest.mark.parametrize("name", ["fp32/encoder.onnx", "int8/decoder_step.onnx", "shared.spm", "README.md"])
def test_a_file_that_lacks_its_end_has_another_byte_or_is_missing_is_refused(
    bundle_folder: Path, name: str
) -> None:
    path = bundle_folder / name
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    for damaged, told in (
        (content[:-1], f"has {len(content) - 1} bytes, .* says {len(content)}"),
        (flipped, "is not the file that was exported: its sha256"),
        (None, "is missing"),
    ):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(BundleFileError, match=f"{name} {told}"):
            open_bundle(bundle_folder)


def test_unreadable_file_is_refused(bundle_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(path: Path) -> BufferedReader:
        if path.name == "manifest.json":
            return open_regular(path)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dragoman_bundle.checked_files.open_regular", forbid)
    with pytest.raises(BundleFileError, match=r"/[\w./]+ can't be read: Permission denied"):
        open_bundle(bundle_folder)


@pytest.mark.parametrize(
    "name", ["../outside.txt", "/etc/hostname", "fp32/../../outside.txt", "..\\outside.txt"]
)
def test_path_out_of_the_folder_is_refused(bundle_folder: Path, name: str) -> None:
    (bundle_folder.parent / "outside.txt").write_bytes(b"outside")
    list_file(bundle_folder, name, b"outside")
    with pytest.raises(BundleFileError, match="lies outside the bundle"):
        open_bundle(bundle_folder)


def test_link_out_of_the_folder_is_refused(bundle_folder: Path) -> None:
    outside = bundle_folder.parent / "outside.txt"
    outside.write_bytes(b"outside")
    (bundle_folder / "link.txt").symlink_to(outside)
    list_file(bundle_folder, "link.txt", b"outside")
    with pytest.raises(BundleFileError, match=r"'link\.txt' lies outside the bundle"):
        open_bundle(bundle_folder)


def test_missing_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"manifest\.json can't be read: No such file"):
        open_bundle(tmp_path)


def test_a_folder_of_versions_names_them(bundle_folder: Path) -> None:
    with pytest.raises(ManifestError, match=f"give one of them: {re.escape(str(bundle_folder))}$"):
        open_bundle(bundle_folder.parent)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda m: m["files"].pop("int8/encoder.onnx"), "needs int8/encoder.onnx, which is not among its"),
        (lambda m: m.update(target_vocabulary=17), "shared.spm has 16 tokens, and the manifest says 17"),
        (lambda m: m["source_ids"].update(eos=7), "shared.spm: its eos id is 3, and the manifest says 7"),
    ],
)
def test_a_manifest_that_does_not_fit_its_files_is_refused(
    bundle_folder: Path, edit: Callable[[dict[str, Any]], None], told: str
) -> None:
    edit_manifest(bundle_folder, edit)
    with pytest.raises((ManifestError, TokenizerMismatchError), match=told):
        open_bundle(bundle_folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda value: value.update(target_vocabulary=17), " has 16 tokens, and the manifest says 17"),
        (lambda value: value["source_ids"].update(eos=7), ": its eos id is 3, and the manifest says 7"),
    ],
)
def test_what_the_tokenizer_does_not_have_is_refused(bundle_folder: Path, edit: Edit, message: str) -> None:
    edit_manifest(bundle_folder, edit)
    with pytest.raises(TokenizerMismatchError, match=rf"shared\.spm{message}"):
        open_bundle(bundle_folder)


def test_another_tokenizer_or_none_is_refused(bundle_folder: Path, other_tokenizer_model: bytes) -> None:
    for content, told in (
        (other_tokenizer_model, r"shared\.spm has 15 tokens, and the manifest says 16"),
        (b"not one", r"shared\.spm: not a sentencepiece model"),
    ):
        (bundle_folder / "shared.spm").write_bytes(content)
        reseal(bundle_folder)
        with pytest.raises(TokenizerMismatchError, match=told):
            open_bundle(bundle_folder)


def test_a_look_at_a_bundle_sees_what_is_missing_and_reads_no_file(bundle_folder: Path) -> None:
    path = bundle_folder / "fp32" / "encoder.onnx"
    content = path.read_bytes()
    path.write_bytes(bytes(len(content)))
    assert look_at_bundle(bundle_folder) == read_manifest(bundle_folder)
    path.write_bytes(content[:-1])
    with pytest.raises(BundleFileError, match=rf"encoder\.onnx has {len(content) - 1} bytes, "):
        look_at_bundle(bundle_folder)
    path.unlink()
    with pytest.raises(BundleFileError, match=r"encoder\.onnx is missing"):
        look_at_bundle(bundle_folder)
    edit_manifest(bundle_folder, lambda value: value["files"].pop("fp32/encoder.onnx"))
    with pytest.raises(ManifestError, match=r"needs fp32/encoder\.onnx, which is not among its files"):
        look_at_bundle(bundle_folder)


@pytest.mark.parametrize(
    ("card", "description"),
    [
        ("# a, version 1\n\nTranslates de to en. Letters. No\npoems.\n\n| a |\n", "Letters. No poems."),
        ("# a, version 1\n\nTranslates from each of these 2 languages to each other: de, en. N.\n", "N."),
        ("# a, version 1\n\nContinues text in de: of a beginning it writes the rest. Notes.\n", "Notes."),
        ("# one's own\n\nIn C# and F#.\n", "In C# and F#."),
        ("# nothing\n\n| a | b |\n", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_what_a_model_is_good_for_is_on_its_card(card: str | None, description: str, tmp_path: Path) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    assert read_description(tmp_path) == description
