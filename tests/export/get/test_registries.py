"""What registries offer, and downloads from them: cut off, gone on with, and checked."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.export.ctranslate2_model import ARGOS_METADATA
from tests.export.get.registry_server import COMMIT, RegistryServer

from dragoman_export.get.download import DownloadError, fetch, read_url
from dragoman_export.get.registry import Offer, RegistryError, mirrored, offer_of, offers

ROOT = Path(__file__).parents[3]
CONTENT = bytes(range(256)) * 4_000
OPUS = "Helsinki-NLP/opus-mt-de-en"
NAMES = {"firefox": "en-fr", "hf": OPUS, "argos": "de-en"}


@pytest.fixture
def registries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    hub, packages = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("packages")
    server = RegistryServer()
    noise = hashlib.shake_256(b"noise").digest(400_000)
    server.add_firefox("en", "fr", {"vocab": b"pieces", "model": noise, "lex": b"words"})
    for name, content in {
        "model.safetensors": CONTENT,
        "config.json": b'{"model_type": "marian"}',
        "pytorch_model.bin": b"the same weights",
        "tf_model.h5": b"the same weights",
    }.items():
        (hub / name).write_bytes(content)
    server.add_hub(OPUS, hub, license="apache-2.0")
    package = packages / "translate-de_en-1_3.argosmodel"
    package.write_bytes(CONTENT)
    server.add_argos(package, ARGOS_METADATA)
    yield server
    server.close()


def find(registries: RegistryServer, registry: str) -> Offer:
    return offer_of(registry, NAMES[registry], mirrored(registries.url)[registry], read_url)


def silent(name: str, done: int, total: int | None) -> None:
    pass


def stop(seconds: float) -> None:
    """In place of a wait: whoever waited presses Ctrl-C."""
    raise KeyboardInterrupt


def test_each_registry_tells_languages_version_size_and_licence(registries: RegistryServer) -> None:
    found = {registry: find(registries, registry) for registry in NAMES}
    pairs = [(offer.source, offer.target) for offer in found.values()]
    assert pairs == [("en", "fr"), ("de", "en"), ("de", "en")]
    versions = [offer.version for offer in found.values()]
    assert versions == ["3.0-base-memory-firefox", "1.20230816-hf", "1.3-argos"]
    assert [offer.licence for offer in found.values()] == ["MPL-2.0", "apache-2.0", ""]
    names = ["model.enfr.intgemm.alphas.bin", "vocab.enfr.spm", "lex.50.50.enfr.s2t.bin"]
    assert [file.name for file in found["firefox"].files] == names
    # Weights come in one form.
    assert [file.name for file in found["hf"].files] == ["config.json", "model.safetensors"]
    assert found["hf"].size == len(CONTENT) + 24
    assert not any(offer.quality for offer in found.values()), "none is claimed"


def test_what_the_makers_of_a_model_measured_is_theirs(registries: RegistryServer, tmp_path: Path) -> None:
    result = {
        "task": {"type": "translation"},
        "dataset": {"type": "tatoeba", "name": "Tatoeba"},
        "metrics": [{"type": "bleu", "value": 55.4}],
    }
    index = [{"name": "opus-mt-de-en", "results": [result]}]
    registries.add_hub(OPUS, tmp_path, **{"model-index": index})
    assert find(registries, "hf").quality == "bleu 55.4 on Tatoeba"


@pytest.mark.parametrize("registry", list(NAMES))
def test_a_download_that_was_cut_off_goes_on_where_it_was(
    registries: RegistryServer, registry: str, tmp_path: Path
) -> None:
    file = max(find(registries, registry).files, key=lambda file: file.size or len(CONTENT))
    path = file.url.removeprefix(registries.url)
    registries.cuts[path] = 100_000
    with pytest.raises(KeyboardInterrupt):
        fetch(file, tmp_path, silent, wait=stop)
    assert [entry.stat().st_size for entry in tmp_path.glob("*.part")] == [100_000]
    done = fetch(file, tmp_path, silent)
    assert registries.ranges(path) == ["", "bytes=100000-"]
    expected = file.unpacked_sha256 or hashlib.sha256(registries.files[path]).hexdigest()
    assert hashlib.sha256(done.read_bytes()).hexdigest() == expected
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]
    # What is there is not asked for again.
    num_requests = len(registries.requests)
    assert fetch(file, tmp_path, silent) == done
    assert len(registries.requests) == num_requests


def test_a_cut_within_one_run_is_gone_on_with_and_progress_is_told(
    registries: RegistryServer, tmp_path: Path
) -> None:
    (file,) = find(registries, "argos").files
    path = "/argos/translate-de_en-1_3.argosmodel"
    registries.cuts[path] = 300_000
    told: list[tuple[int, int | None]] = []
    waits: list[float] = []
    fetch(file, tmp_path, lambda name, done, total: told.append((done, total)), wait=waits.append)
    assert registries.ranges(path) == ["", "bytes=300000-"]
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert len(waits) == 1


def test_a_file_that_is_another_by_now_begins_anew(registries: RegistryServer, tmp_path: Path) -> None:
    (file,) = find(registries, "argos").files
    path = "/argos/translate-de_en-1_3.argosmodel"
    registries.cuts[path] = 300_000
    with pytest.raises(KeyboardInterrupt):
        fetch(file, tmp_path, silent, wait=stop)
    registries.files[path] = CONTENT[::-1]
    assert fetch(file, tmp_path, silent).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize(("registry", "which"), [("firefox", 0), ("hf", 0), ("hf", 1)])
def test_what_does_not_check_out_is_not_kept(
    registries: RegistryServer, registry: str, which: int, tmp_path: Path
) -> None:
    file = find(registries, registry).files[which]
    path = file.url.removeprefix(registries.url)
    registries.files[path] = registries.files[path][:-1] + b"\x07"
    with pytest.raises(DownloadError, match=r"has the checksum .*, and its registry says"):
        fetch(file, tmp_path, silent)
    assert not [entry for entry in tmp_path.glob("*") if entry.name.startswith(file.name)]


def test_what_unpacks_to_something_else_is_not_kept(registries: RegistryServer, tmp_path: Path) -> None:
    file = find(registries, "firefox").files[0]
    for changes, message in (
        ({"unpacked_sha256": "0" * 64}, "unpacks to the checksum"),
        ({"unpacked_size": 300_000}, "does not unpack to the 300000 bytes"),
        ({"unpacked_size": 500_000}, "does not unpack to the 500000 bytes"),
    ):
        with pytest.raises(DownloadError, match=message):
            fetch(replace(file, **changes), tmp_path, silent)
        assert not list(tmp_path.glob("model*"))


def test_a_server_that_never_ends_is_left(registries: RegistryServer, tmp_path: Path) -> None:
    file = replace(find(registries, "argos").files[0], size=1_000)
    with pytest.raises(DownloadError, match="has more bytes than the 1000 that its registry says"):
        fetch(file, tmp_path, silent)
    assert not list(tmp_path.glob("*.part"))


def test_of_several_records_of_a_pair_the_newest_release_for_all_is_taken(registries: RegistryServer) -> None:
    files = {"vocab": b"pieces", "model": b"weights"}
    nightly = "env.channel == 'nightly'"
    for version, expression in (("2.1", ""), ("4.0", nightly), ("10.0a1", ""), ("3.10", "")):
        registries.add_firefox("en", "fr", files, version=version, filter_expression=expression)
    # Without a vocabulary it is none.
    registries.add_firefox("en", "nl", {"model": b"weights"})
    registries.add_firefox("en", "zh-Hant", {"model": b"1", "srcvocab": b"2", "trgvocab": b"3"})
    assert find(registries, "firefox").version == "3.10-base-memory-firefox"
    address = mirrored(registries.url)["firefox"]
    assert [offer.name for offer in offers("firefox", address, read_url, "", "")] == ["en-fr", "en-zh-Hant"]
    chinese = offer_of("firefox", "en-zh-Hant", address, read_url)
    assert [file.name[:8] for file in chinese.files][1:] == ["srcvocab", "trgvocab"]


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("/firefox/records", b"<html>", "is no index of models: it is not JSON"),
        ("/firefox/records", b'{"records": []}', "has no list of them"),
        ("/argos/index.json", b"[" * 100_000, "is not JSON"),
    ],
)
def test_an_index_that_is_none_is(
    registries: RegistryServer, path: str, content: bytes, message: str
) -> None:
    registries.files[path] = content
    with pytest.raises(RegistryError, match=message):
        find(registries, path.split("/")[1])


def test_names_and_addresses_of_an_index_reach_nothing_else(registries: RegistryServer) -> None:
    records = json.loads(registries.files["/firefox/records"])
    records["data"][0]["name"] = "../../vocab.spm"
    registries.files["/firefox/records"] = json.dumps(records).encode()
    with pytest.raises(RegistryError, match="is no name of a file"):
        find(registries, "firefox")
    packages = json.loads(registries.files["/argos/index.json"])
    packages[0]["links"] = ["file:///etc/passwd"]
    registries.files["/argos/index.json"] = json.dumps(packages).encode()
    with pytest.raises(RegistryError, match="argos has no model from de to en"):
        find(registries, "argos")


def test_what_is_not_there_is_told(registries: RegistryServer) -> None:
    addresses = mirrored(registries.url)
    with pytest.raises(RegistryError, match="has no model Helsinki-NLP/opus-mt-xx-yy"):
        offer_of("hf", "Helsinki-NLP/opus-mt-xx-yy", addresses["hf"], read_url)
    with pytest.raises(RegistryError, match="names no model of the hub"):
        offer_of("hf", "../etc", addresses["hf"], read_url)
    with pytest.raises(RegistryError, match="names no pair of languages"):
        offer_of("firefox", "german", addresses["firefox"], read_url)
    with pytest.raises(DownloadError, match="can't be downloaded"):
        offer_of("argos", "de-en", mirrored("http://127.0.0.1:9")["argos"], read_url)
    with pytest.raises(RegistryError, match="can't be asked"):
        offer_of("hf", OPUS, mirrored("http://127.0.0.1:9")["hf"], read_url)


def test_no_other_module_names_a_host_of_models() -> None:
    hosts = re.compile(r"huggingface\.co\b|argosopentech|argos-net|mozilla\.(com|net)|storage\.googleapis")
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ("clients", "bundle", "export", "server", "training")
        for path in (ROOT / room).rglob("*.py")
        if hosts.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"export/dragoman_export/get/registry.py"}


def test_hugging_faces_own_client_takes_the_same_answers(registries: RegistryServer, tmp_path: Path) -> None:
    program = f"""
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
print(hf_hub_download({OPUS!r}, "model.safetensors"))
print([model.id for model in HfApi().list_models(author="Helsinki-NLP", search="opus-mt-")])
"""
    folders = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    variables = os.environ | folders | {"HF_ENDPOINT": f"{registries.url}/hf"}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path, listed = done.stdout.splitlines()
    assert Path(path).read_bytes() == CONTENT
    assert COMMIT in path
    assert listed == f"['{OPUS}']"
