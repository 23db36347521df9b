"""A shortlist round-trips, gives each sentence its own candidates, and is refused when it is damaged."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle import BundleFileError, Manifest, ManifestError, Shortlist, ShortlistError, open_bundle
from dragoman_bundle.manifest import SHORTLIST_GRAPHS, ShortlistSpec, TensorSpec
from dragoman_bundle.writer import seal
from tests.bundle.conftest import GRAPH

SPEC = ShortlistSpec(
    file="shortlist.npz",
    memory=(TensorSpec(name="memory.x", dtype={"int8": "int8"}, shape=("S", 8, "C"), growth_axis=None),),
)


def make_shortlist() -> Shortlist:
    """Over 16 source and 16 target tokens, as the test bundle has."""
    rows = [[], [], [], [], [7, 9], [10], [4, 8, 9, 11], *([token] for token in range(7, 16))]
    return Shortlist(
        first_V=np.cumsum([0, *map(len, rows)]).astype(np.uint32),
        target_N=np.concatenate(rows).astype(np.uint16),
        always=np.array([3, 5], np.uint16),
        target_vocabulary=16,
    )


@pytest.fixture
def shortlist_folder(bundle_folder: Path) -> Path:
    """The bundle with a shortlist."""
    for precision in ("fp32", "int8"):
        for graph in SHORTLIST_GRAPHS:
            (bundle_folder / precision / f"{graph}.onnx").write_bytes(GRAPH)
    make_shortlist().save(bundle_folder / "shortlist.npz")
    manifest = Manifest.from_json((bundle_folder / "manifest.json").read_text())
    seal(bundle_folder, replace(manifest, shortlist=SPEC))
    return bundle_folder


def test_candidates_are_those_of_the_source_tokens_and_those_of_everyone() -> None:
    candidates = make_shortlist().candidates([[4, 4, 5, 3], [3], [6, 12]])
    assert [own.tolist() for own in candidates] == [[3, 5, 7, 9, 10], [3, 5], [3, 4, 5, 8, 9, 11, 12]]


def test_candidates_do_not_depend_on_the_neighbours() -> None:
    generator = np.random.default_rng(1)
    sources = [generator.integers(0, 16, length).tolist() for length in (1, 9, 3, 14, 2)]
    shortlist = make_shortlist()
    for source, own in zip(sources, shortlist.candidates(sources), strict=True):
        (alone,) = shortlist.candidates([source])
        assert own.tolist() == alone.tolist()


def test_shortlist_round_trips_in_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    make_shortlist().save(one)
    loaded = Shortlist.from_bytes(one.read_bytes(), source_vocabulary=16, target_vocabulary=16)
    loaded.save(other)
    assert one.read_bytes() == other.read_bytes()
    assert loaded.candidates([[6]])[0].tolist() == [3, 4, 5, 8, 9, 11]


def test_bundle_with_a_shortlist_opens(shortlist_folder: Path) -> None:
    bundle = open_bundle(shortlist_folder)
    assert bundle.manifest.shortlist == SPEC
    assert bundle.shortlist is not None
    assert bundle.shortlist.candidates([[5]])[0].tolist() == [3, 5, 10]


def test_bundle_of_format_version_1_opens_without_one(bundle_folder: Path) -> None:
    path = bundle_folder / "manifest.json"
    value = json.loads(path.read_text())
    assert value.pop("shortlist") is None
    path.write_text(json.dumps({**value, "format_version": 1}))
    assert open_bundle(bundle_folder).shortlist is None


def test_flipped_byte_is_refused(shortlist_folder: Path) -> None:
    path = shortlist_folder / "shortlist.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BundleFileError, match=r"shortlist\.npz is not the file that was exported"):
        open_bundle(shortlist_folder)


@pytest.mark.parametrize("name", ["shortlist.npz", "int8/shortlist.onnx", "fp32/decoder_step_shortlist.onnx"])
def test_file_that_is_not_listed_is_refused(shortlist_folder: Path, name: str) -> None:
    path = shortlist_folder / "manifest.json"
    value = json.loads(path.read_text())
    del value["files"][name]
    path.write_text(json.dumps(value))
    with pytest.raises(ManifestError, match=f"needs {name}, which is not among its files"):
        open_bundle(shortlist_folder)


def vouch_for(folder: Path, content: bytes) -> None:
    """Puts another shortlist in the place of the bundle's, with its checksum."""
    (folder / "shortlist.npz").write_bytes(content)
    path = folder / "manifest.json"
    value = json.loads(path.read_text())
    value["files"]["shortlist.npz"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    path.write_text(json.dumps(value))


def test_file_that_is_no_shortlist_is_refused(shortlist_folder: Path) -> None:
    vouch_for(shortlist_folder, b"PK not one")
    with pytest.raises(ShortlistError, match=r"shortlist\.npz: it is not a shortlist"):
        open_bundle(shortlist_folder)


def test_single_array_in_its_place_is_refused(shortlist_folder: Path) -> None:
    with (shortlist_folder / "shortlist.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    seal(shortlist_folder, Manifest.from_json((shortlist_folder / "manifest.json").read_text()))
    with pytest.raises(ShortlistError, match=r"shortlist\.npz: it is not a shortlist"):
        open_bundle(shortlist_folder)


def test_shortlist_that_lets_no_sentence_end_is_refused(shortlist_folder: Path) -> None:
    replace(make_shortlist(), always=np.array([5, 6], np.uint16)).save(shortlist_folder / "shortlist.npz")
    seal(shortlist_folder, Manifest.from_json((shortlist_folder / "manifest.json").read_text()))
    with pytest.raises(ShortlistError, match="does not let every sentence end: token 3"):
        open_bundle(shortlist_folder)


def test_shortlist_for_another_vocabulary_is_refused(shortlist_folder: Path, tmp_path: Path) -> None:
    ones = np.ones(3, np.uint16)
    shortlist = Shortlist(
        first_V=np.array([0, 3], np.uint32), target_N=ones, always=ones, target_vocabulary=16
    )
    shortlist.save(tmp_path / "other.npz")
    vouch_for(shortlist_folder, (tmp_path / "other.npz").read_bytes())
    with pytest.raises(ShortlistError, match=r"shortlist\.npz: it is for 1 source tokens, not 16"):
        open_bundle(shortlist_folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target_N": np.full(16, 16, np.uint16)}, "holds target token 16, and there are 16 target tokens"),
        ({"target_N": np.zeros(3, np.uint16)}, "its 3 entries are not cut into rows"),
        ({"first_V": np.array([0, 9, 4, 16], np.uint32)}, "not cut into rows"),
        ({"first_V": np.array([[0, 16]], np.uint32)}, "not all lists of unsigned integers"),
        ({"always": np.array([-3])}, "not all lists of unsigned integers"),
        ({"always": np.empty(0, np.uint16)}, "no token that every sentence may use"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ShortlistError, match=message):
        replace(make_shortlist(), **changes)
