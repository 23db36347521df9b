"""`dragoman get`: by languages, by name, from here; and a server that has it called."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from dragoman_bundle import open_bundle
from sentencepiece import SentencePieceProcessor
from tests.export.commands import call
from tests.export.ctranslate2_model import ARGOS_METADATA, pack, write_package
from tests.export.get.registry_server import RegistryServer, binary_shortlist
from tests.server.server_process import ServerProcess

from dragoman_export.get.cli import get

MARIAN = Path(__file__).parents[4] / "shared" / "data" / "marian-native"
OPUS = "Helsinki-NLP/opus-mt-de-en"
StartServer = Callable[[str, str], ServerProcess]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An .argosmodel; beside it the folder that is in it."""
    folder = tmp_path_factory.mktemp("package")
    return pack(write_package(folder / "translate-de_en-1_3"), folder / "translate-de_en-1_3.argosmodel")


@pytest.fixture(scope="module")
def checkpoint(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as CTranslate2's models have it on the hub, their tokenizer called as quickmt calls it."""
    unpacked = package.with_suffix("")
    folder = shutil.copytree(unpacked / "model", tmp_path_factory.mktemp("hub") / "opus-mt-de-en")
    shutil.copy(unpacked / "sentencepiece.model", folder / "joint.spm.model")
    return folder


@pytest.fixture
def registries(checkpoint: Path, package: Path) -> Iterator[RegistryServer]:
    server = RegistryServer()
    server.add_firefox("en", "fr", {"vocab": b"pieces", "model": b"\1\0\0\0\0\0\0\0weights"})
    server.add_hub(OPUS, checkpoint, license="cc-by-4.0")
    server.add_argos(package, ARGOS_METADATA)
    yield server
    server.close()


run = partial(call, get)


def test_a_pair_comes_as_its_best_with_licence_and_once(registries: RegistryServer, tmp_path: Path) -> None:
    models = tmp_path / "models"
    places = ("--mirror", registries.url, "--models", models)
    code, told = run("de-en", *places, "--yes", "--precisions", "fp32")
    assert code == 0, told
    assert f"hf:{OPUS}, version 1.20230816-hf: " in told
    assert "licence: cc-by-4.0; quality: its registry says none; by Helsinki-NLP" in told
    assert "model.bin: " in told, "progress, into a pipe too"
    assert "kill -HUP" in told
    [path] = models.glob("[!.]*/*")
    assert path.relative_to(models).as_posix() == "de-en/1.20230816-hf"
    manifest = open_bundle(path).manifest
    assert (manifest.licence, manifest.credit) == ("cc-by-4.0", f"Helsinki-NLP (hf:{OPUS})")
    card = (path / "README.md").read_text()
    assert f"dragoman get hf:{OPUS} --source-language de --target-language en \\\n  --out" in card
    assert not [file for file in (models / ".downloads").rglob("*") if file.is_file()]
    num_requests = len(registries.requests)
    for asked in ("de-en", f"hf:{OPUS}", "argos:de-en"):
        assert run(asked, *places, "--missing") == (0, f"{asked}: de-en/1.20230816-hf is there")
    assert len(registries.requests) == num_requests, "what is there needs no network"
    assert "is there; --force gets it again" in run("de-en", *places)[1]


def test_a_package_of_argos_is_kept_and_comes_again_without_a_network(
    registries: RegistryServer, tmp_path: Path
) -> None:
    kept = ("--cache", tmp_path / "cache", "--precisions", "fp32")
    code, told = run("argos:de-en", "--mirror", registries.url, "--models", tmp_path / "a", "--yes", *kept)
    assert code == 0, told
    registries.close()
    code, told = run("de-en", "--offline", "--models", tmp_path / "b", "--yes", *kept)
    assert code == 0, told
    manifest = open_bundle(tmp_path / "b" / "de-en" / "1.3-argos").manifest
    assert manifest.licence == "CC0", "which its own README says"
    assert "(argos:de-en)" in manifest.credit
    code, told = run("en-fr", "--offline", "--models", tmp_path / "b", "--yes", *kept)
    assert (code, "has no en-fr; it has argos:de-en" in told) == (1, True)
    assert run("de-en", "--offline")[0] == 2


def test_what_is_told_is_asked(registries: RegistryServer, tmp_path: Path) -> None:
    places = ("--mirror", registries.url, "--models", tmp_path / "models")
    code, told = run("de-en", *places, answer="n\n")
    assert (code, "Get it?" in told) == (1, True)
    assert not (tmp_path / "models").exists()


@pytest.mark.skipif(not MARIAN.is_dir(), reason="the trained models are not here")
def test_firefox_model_comes_with_its_shortlist(registries: RegistryServer, tmp_path: Path) -> None:
    files = {"model": "ssru.firefox.bin", "vocab": "vocabulary.spm"}
    found = {kind: (MARIAN / name).read_bytes() for kind, name in files.items()}
    num_pieces = SentencePieceProcessor(model_proto=found["vocab"]).get_piece_size()
    lex = binary_shortlist([[piece] for piece in range(num_pieces)], num_first=num_pieces // 2)
    registries.add_firefox("de", "en", {**found, "lex": lex})
    models = tmp_path / "models"
    places = ("--mirror", registries.url, "--models", models)
    code, told = run("firefox:de-en", *places, "--yes", "--precisions", "fp32")
    assert code == 0, told
    assert "firefox:de-en, version 3.0-base-memory-firefox" in told
    manifest = open_bundle(models / "de-en" / "3.0-base-memory-firefox").manifest
    assert manifest.licence == "MPL-2.0"
    assert manifest.shortlist is not None


def test_the_list_has_all_registries(registries: RegistryServer) -> None:
    code, told = run("--list", "--mirror", registries.url)
    assert code == 0, told
    for spec in ("firefox:en-fr", f"hf:{OPUS}", "argos:de-en"):
        assert spec in told
    _, french = run("--list", "--mirror", registries.url, "--to", "fr")
    assert french.startswith("en-fr firefox:en-fr 3.0-base-memory-firefox")
    assert "de-en" not in french


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nonsense"], 2, "'nonsense' is neither a pair of languages, such as de-en, nor a name such as hf:"),
        ([], 2, "name a MODEL, such as de-en, or give --list"),
        (["de-en", "en-de", "--out", "m/x/1"], 2, "--out is of one model, and there are 2"),
        (["de-fr", "--yes"], 1, "no registry has a model from de to fr; try `dragoman get de-en en-fr`"),
        (["hf:no/such"], 1, "has no model no/such"),
    ],
)
def test_what_can_not_be_had_is_told(
    registries: RegistryServer, arguments: list[str], code: int, message: str
) -> None:
    found, told = run(*arguments, "--mirror", registries.url)
    assert (found, message in told) == (code, True), told


def test_a_folder_is_called_by_its_languages_and_the_next_number(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "de-en" / "7").mkdir(parents=True)
    languages = ("--source-language", "de", "--target-language", "en")
    code, told = run(checkpoint, "--models", tmp_path, "--precisions", "fp32", *languages)
    assert code == 0, told
    assert open_bundle(tmp_path / "de-en" / "8").manifest.key == "de-en/8"


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts `dragoman serve --get` with a mirror and names, and ends what is left."""
    with ExitStack() as stack:

        def start(mirror: str, names: str) -> ServerProcess:
            environment = {"DRAGOMAN_MIRROR": mirror}
            server = ServerProcess(tmp_path / "models", "--get", names, environment=environment)
            return stack.enter_context(server)

        yield start


@pytest.mark.long
def test_a_server_fetches_what_it_lacks_and_starts_without_a_network_then(
    registries: RegistryServer, start_server: StartServer
) -> None:
    for url in (registries.url, "http://127.0.0.1:9"):
        server = start_server(url, "de-en")
        server.wait_for("ready")
        server.process.terminate()
        assert server.end()[0] == 0
    assert any("is there" in str(line.get("said", "")) for line in server.log)
    server = start_server("http://127.0.0.1:9", "de-en, en-fr")
    assert "`dragoman get de-en en-fr` failed: Error: " in str(server.wait_for("not serving")["reason"])
    assert server.end()[0] == 1


def test_a_server_that_is_stopped_ends_what_fetches_for_it(
    registries: RegistryServer, start_server: StartServer, tmp_path: Path
) -> None:
    registries.files["/firefox/records"] = b"{}"
    server = start_server(registries.url, f"hf:{OPUS}")
    server.wait_for("getting models")
    server.process.terminate()
    assert server.end()[0] == 0
    time.sleep(0.1)
    found = subprocess.run(["pgrep", "-f", f"get --yes --missing --models {tmp_path}"], capture_output=True)
    assert not found.stdout
