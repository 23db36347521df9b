"""The folder of saved aligners: what is none, what changes, and what the server lacks."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.server.aligners.test_served_aligners import request
from tests.server.conftest import StartServer

from dragoman_server.aligners.aligner import Aligners
from dragoman_server.errors import ServerFileError
from dragoman_server.metrics.translation import Metrics
from dragoman_server.options import MissingExtraError


def copy_damaged(folder: Path, aligner: Path) -> None:
    shutil.copytree(aligner, folder / "a")
    (folder / "a" / "forward.npz").write_bytes(b"PK")


BROKEN: dict[str, Callable[[Path, Path], object]] = {
    "holds no aligner: `dragoman align train --out": lambda folder, _: None,
    "notes is no folder": lambda folder, _: (folder / "notes").write_text(""),
    "aligner.json is no folder": lambda folder, it: shutil.copytree(it, folder, dirs_exist_ok=True),
    "an aligner's name has letters": lambda folder, it: (folder / "ä b").symlink_to(it),
    "is no saved aligner: it has no aligner.json": lambda folder, _: (folder / "a").mkdir(),
    "is damaged": copy_damaged,
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_folder_of_something_else_is_refused(tmp_path: Path, aligner_folder: Path, said: str) -> None:
    BROKEN[said](tmp_path, aligner_folder)
    with pytest.raises(ServerFileError, match=said):
        Aligners(tmp_path, Metrics(CollectorRegistry())).read()


def test_what_is_being_written_is_not_read(tmp_path: Path, aligner_folder: Path) -> None:
    (tmp_path / ".b.123.partial").mkdir()
    (tmp_path / "a").symlink_to(aligner_folder)
    assert list(Aligners(tmp_path, Metrics(CollectorRegistry())).read()) == ["a"]


async def test_a_server_does_not_start_with_a_broken_folder(
    start_server: StartServer, tmp_path: Path
) -> None:
    with pytest.raises(ServerFileError, match="can't be read: No such file or directory"):
        await start_server(aligners=tmp_path / "none")


async def test_a_server_without_the_extra_says_what_to_install(
    start_server: StartServer, aligners: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dragoman_training")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"--aligners needs numba.*'\.\[align\]'"):
        await start_server(aligners=aligners)


async def test_a_reload_reads_what_is_new_and_keeps_what_is_not(
    start_server: StartServer, aligner_folder: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        shutil.copytree(aligner_folder, tmp_path / name)
    running = await start_server(aligners=tmp_path)
    served = running.server._aligners
    kept = served.by_name["a"].linker
    (tmp_path / "b").rename(tmp_path / "c")
    await running.server.reload()
    assert list(served.by_name) == ["a", "c"]
    assert served.by_name["a"].linker is kept
    assert running.metric("dragoman_last_reload_successful") == 1
    await running.stub.AlignTexts(request(("hund", "dog"), aligner="c"))
    assert running.metric("dragoman_aligned_pairs_total", model="aligner:c") == 1
    (tmp_path / "broken").mkdir()
    await running.server.reload()
    assert list(served.by_name) == ["a", "c"]
    assert running.metric("dragoman_last_reload_successful") == 0
    (tmp_path / "broken").rmdir()
    shutil.rmtree(tmp_path / "c")
    await running.server.reload()
    assert running.metric("dragoman_aligned_pairs_total", model="aligner:c") == 0
    assert list(served.by_name) == ["a"]
