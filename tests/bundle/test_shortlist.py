"""A shortlist round-trips, gives each sentence its own candidates, and is refused when it is damaged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle import ManifestError, Shortlist, ShortlistError, open_bundle
from dragoman_bundle.manifest import SHORTLIST_GRAPHS, ShortlistSpec, TensorSpec
from tests.bundle.conftest import GRAPH, reseal

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
    reseal(bundle_folder, shortlist=SPEC)
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


@pytest.mark.parametrize("name", ["shortlist.npz", "int8/shortlist.onnx", "fp32/decoder_step_shortlist.onnx"])
def test_file_that_is_not_listed_is_refused(shortlist_folder: Path, name: str) -> None:
    path = shortlist_folder / "manifest.json"
    value = json.loads(path.read_text())
    del value["files"][name]
    path.write_text(json.dumps(value))
    with pytest.raises(ManifestError, match=f"needs {name}, which is not among its files"):
        open_bundle(shortlist_folder)


def single_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


ONES = np.ones(3, np.uint16)
OF_ONE_TOKEN = Shortlist(
    first_V=np.array([0, 3], np.uint32), target_N=ONES, always=ONES, target_vocabulary=16
)
WITHOUT_AN_END = replace(make_shortlist(), always=np.array([5, 6], np.uint16))


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda path: path.write_bytes(b"PK not one"), r"shortlist\.npz: it is not a shortlist"),
        (single_array, r"shortlist\.npz: it is not a shortlist"),
        (WITHOUT_AN_END.save, "does not let every sentence end: token 3"),
        (OF_ONE_TOKEN.save, r"shortlist\.npz: it is for 1 source tokens, not 16"),
    ],
    ids=["nonsense", "single array", "no end", "another vocabulary"],
)
def test_file_that_is_no_shortlist_of_the_model_is_refused(
    shortlist_folder: Path, write: Callable[[Path], object], told: str
) -> None:
    write(shortlist_folder / "shortlist.npz")
    reseal(shortlist_folder)
    with pytest.raises(ShortlistError, match=told):
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
