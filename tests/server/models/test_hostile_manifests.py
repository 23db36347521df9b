"""Whatever a manifest says, its bundle is refused, or the server tells of the model and translates with it.

One bundle never keeps a server from answering for the others.
"""

import copy
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman_bundle import Manifest, ManifestError
from tests.server.conftest import StartServer
from tests.server.copying_bundle import MANIFEST, write_bundle

from dragoman.v1 import translation_pb2 as pb

INFINITY = "@1e400"
"""Stands for a number that JSON can write and that no float holds."""
VALUES = [
    *(None, True, False, -1, 0, 1, 2, 7, 1024, 1025),
    *(2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**40, -(10**40)),
    *(0.0, -0.0, 0.5, -1.0, 1e-320, 3.5e38, 1e308, INFINITY),
    *("", "x", "de", "fp16", "\ud800", "a\ud800b", "d\ne", "\0", "\x1b[2J", "\u2028", "../x", "/etc/x"),
    *("x" * 129, "x" * 2_001, "€" * 10_001, "x" * 300_000, "0" * 64, "%s %n {} {0.__class__}"),
    *([], [None], ["x"] * 20_000, {}, {"x": 1}, {"\ud800": 1}),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose manifest says all that one can."""
    quality = replace(MANIFEST.quality[0], shortlist=False, length_penalty=1.0)
    return write_bundle(tmp_path_factory.mktemp("good"), manifest=replace(MANIFEST, quality=(quality,)))


def paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where everything in a manifest stands; of lists and of its files, the first alone."""
    if path:
        yield path
    if isinstance(value, dict):
        keys = list(value)[:1] if path == ("files",) else list(value)
        for key in keys:
            yield from paths(value[key], (*path, key))
    elif isinstance(value, list) and value:
        yield from paths(value[0], (*path, 0))


def hostile_manifests(good: Path) -> Iterator[str]:
    """A manifest for each of its fields and each value, as text."""
    manifest = json.loads((good / "manifest.json").read_text())
    for path in paths(manifest):
        for value in VALUES:
            edited = copy.deepcopy(manifest)
            inner: Any = edited
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            yield json.dumps(edited).replace(f'"{INFINITY}"', INFINITY[1:])


def read(text: str) -> Manifest | str:
    """The manifest, or why it is none."""
    try:
        return Manifest.from_json(text)
    except ManifestError as error:
        return str(error)


def test_no_value_of_a_field_breaks_its_reader(good: Path) -> None:
    """And what it says of it is a text that a log line can hold."""
    for text in hostile_manifests(good):
        refusal = read(text)
        if isinstance(refusal, str):
            assert len(refusal.encode()) < 1000


@pytest.mark.long
async def test_what_opens_is_served_and_told(good: Path, tmp_path: Path, start_server: StartServer) -> None:
    shutil.copytree(good, tmp_path / "de-en" / "1")
    num_opened = 1
    for text in hostile_manifests(good):
        manifest = read(text)
        if isinstance(manifest, Manifest) and manifest.key == "de-en/1":
            num_opened += 1
            place = tmp_path / "de-en" / str(num_opened)
            shutil.copytree(good, place, copy_function=os.link)
            (place / "manifest.json").unlink()
            value = json.loads(text) | {"version": str(num_opened)}
            (place / "manifest.json").write_text(json.dumps(value))
    running = await start_server(models=tmp_path)
    listed = (await running.stub.ListModels(pb.ListModelsRequest())).models
    refused = running.metric("dragoman_refused_bundles")
    assert len(listed) + refused == num_opened
    assert len(listed) > 20
    for model in listed:
        key = f"{model.name}/{model.version}"
        assert (await running.stub.GetModel(pb.GetModelRequest(name=key))).model == model
        answer = await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], model=key))
        assert answer.model.version == model.version
