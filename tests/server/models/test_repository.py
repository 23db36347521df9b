"""Which bundles are served, and which model answers to what, however a language is written."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from dragoman_bundle import Bundle
from prometheus_client import CollectorRegistry
from tests.server.copying_bundle import MANIFEST, write_bundle

from dragoman_server.config import EngineConfig
from dragoman_server.engine import DeviceUnavailableError
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.errors import ModelNotFoundError
from dragoman_server.metrics.translation import Metrics, ModelMetrics
from dragoman_server.models.language_lookup import distance
from dragoman_server.models.loader import ModelLoader
from dragoman_server.models.model import Model
from dragoman_server.models.repository import Repository, RepositoryError, _way_up, load_repository
from dragoman_server.service.statuses import status_of

NONE_SERVED = Repository([], {})


def load(folder: Path, **config: str | int) -> Repository:
    engine = EngineConfig(**({"device": "cpu", "threads": 1} | config))
    loader = ModelLoader(engine, max_beam_size=4, metrics=Metrics(CollectorRegistry()))
    repository = load_repository(folder, loader.load, NONE_SERVED)
    for model in repository.models:
        model.engine.close()
    return repository


def test_versions_are_ordered_as_numbers(tmp_path: Path) -> None:
    for version in ("10", "9", "1.10", "1.9"):
        write_bundle(tmp_path, f"de-en/{version}")
    repository = load(tmp_path)
    assert [model.key for model in repository.models] == [
        f"de-en/{version}" for version in ("1.9", "1.10", "9", "10")
    ]
    assert repository.by_name("de-en").key == "de-en/10"
    assert repository.by_name("de-en/9").key == "de-en/9"
    assert repository.by_languages("DE", "en").key == "de-en/10"


def model(version: str, *, name: str = "de-en", source_language: str = "de") -> Model:
    """Of which a repository needs no more than the manifest."""
    manifest = replace(MANIFEST, name=name, version=version, source_language=source_language)
    return Model(
        bundle=cast(Bundle, SimpleNamespace(manifest=manifest)),
        engine=cast(EnginePool, None),
        metrics=cast(ModelMetrics, None),
        precision="fp32",
        providers={},
        default_beam_size=2,
        max_sentences={},
    )


def test_of_very_many_models_the_first_are_listed() -> None:
    names = [f"model-{number:03}" for number in range(300)]
    repository = Repository([model("1", name=name, source_language=f"x{name[-3:]}") for name in names], {})
    with pytest.raises(ModelNotFoundError, match=r"model-000/1, .*, model-019/1, and 280 more$") as by_name:
        repository.by_name("none")
    with pytest.raises(ModelNotFoundError, match=r"x000-en, .*, x019-en, and 280 more$"):
        repository.by_languages("de", "fr")
    # Half of what gRPC takes for a call's trailer.
    assert len(status_of(by_name.value).SerializeToString()) < 4096


def test_a_pair_is_answered_by_the_first_model_that_has_it(tmp_path: Path) -> None:
    write_bundle(tmp_path, "small/9")
    write_bundle(tmp_path, "large/1")
    write_bundle(tmp_path, "other/1", "fr-en")
    repository = load(tmp_path)
    assert repository.by_languages("de", "en").key == "large/1"
    assert repository.by_languages("fr", "en").key == "other/1"
    with pytest.raises(ModelNotFoundError, match="de-en, fr-en"):
        repository.by_languages("en", "de")
    with pytest.raises(
        ModelNotFoundError, match="; the code of 'Deutsch' is \"de\"; the pairs there are: de-en"
    ):
        repository.by_languages("Deutsch", "en")
    with pytest.raises(ModelNotFoundError, match="large/1, other/1, small/9"):
        repository.by_name("small/8")


def test_the_closest_model_is_taken_whatever_it_is_called() -> None:
    names = {"a": "de-AT", "b": "de", "c": "de-CH", "d": "fr"}
    repository = Repository([model("1", name=name, source_language=code) for name, code in names.items()], {})
    for source, name in (("de", "b"), ("de-CH", "c"), ("de_at", "a"), ("de-LI", "b"), ("fra", "d")):
        assert repository.by_languages(source, "en-GB").key == f"{name}/1"
    with pytest.raises(
        ModelNotFoundError, match="from 'nl' to 'en'; the pairs there are: de-at-en, de-ch-en"
    ):
        repository.by_languages("nl", "en")


def test_a_bad_bundle_is_left_out_and_the_others_are_served(tmp_path: Path) -> None:
    write_bundle(tmp_path, "de-en/1")
    graph = write_bundle(tmp_path, "de-en/2") / "fp32" / "encoder.onnx"
    graph.write_bytes(graph.read_bytes()[:-1])
    spoilt = write_bundle(tmp_path, "fr-en/1") / "shared.spm"
    spoilt.write_bytes(bytes(reversed(spoilt.read_bytes())))
    # What is hidden or no folder is no bundle.
    (tmp_path / "de-en" / ".2.tmp").mkdir()
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / "README.md").write_text("models")
    (tmp_path / "de-en" / "notes.txt").write_text("notes")
    repository = load(tmp_path)
    assert [model.key for model in repository.models] == ["de-en/1"]
    assert repository.refused.keys() == {"de-en/2", "fr-en/1"}
    for key, told in (("de-en/2", (str(graph), "bytes")), ("fr-en/1", (str(spoilt), "sha256"))):
        assert all(words in str(repository.refused[key]) for words in told)


def spoil_manifest(bundle: Path, old: str, new: str) -> None:
    path = bundle / "manifest.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda bundle: (bundle / "manifest.json").write_text("[" * 100_000),
        lambda bundle: spoil_manifest(bundle, '"shared.spm"', r'"shared\u0000.spm"'),
        lambda bundle: spoil_manifest(bundle, '"shared.spm"', r'"shared\ud800.spm"'),
        lambda bundle: spoil_manifest(bundle, '"max_output_ratio": 1.5', '"max_output_ratio": 1e999'),
    ],
    ids=["nested", "zero byte", "surrogate", "infinite"],
)
def test_no_bundle_keeps_others_from_being_served(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    write_bundle(tmp_path, "de-en/1")
    spoil(write_bundle(tmp_path, "fr-en/1", "fr-en"))
    repository = load(tmp_path)
    assert [model.key for model in repository.models] == ["de-en/1"]
    assert list(repository.refused) == ["fr-en/1"]


def test_one_bundle_is_no_models_folder_and_is_told_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=rf"is one bundle, .*--models {re.escape(str(tmp_path))}$"):
        load(write_bundle(tmp_path, "de-en/1"))
    # As where a volume of a container is one: /models has no two folders above it.
    assert _way_up(Path("/models"), 2) == "it belongs at /models/NAME/VERSION"
    assert _way_up(Path("/models"), 1) == "it belongs at /models/NAME"
    assert _way_up(Path("/srv/models/de-en"), 1) == "give the folder above: --models /srv/models"
    assert _way_up(Path("/srv/de-en/1"), 2) == "give the folder above both: --models /srv"


def test_a_folder_that_can_not_be_read_is_told_and_served_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("de-en/1", "fr-en/1"):
        write_bundle(tmp_path, key)
    # Permissions don't stop root, as whom tests may run.
    scan, locked = os.scandir, {tmp_path / "fr-en"}

    def scan_unless_locked(path: Path) -> Iterator[os.DirEntry[str]]:
        if path in locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_unless_locked)
    served = Repository([model("1"), model("1", name="fr-en")], {})
    for repository, keys in (
        (load(tmp_path), ["de-en/1"]),
        (load_repository(tmp_path, load_nothing, served), ["de-en/1", "fr-en/1"]),
    ):
        assert [each.key for each in repository.models] == keys
        assert "fr-en can't be read: Permission denied" in str(repository.refused["fr-en"])
    locked.add(tmp_path)
    with pytest.raises(RepositoryError, match=r"models folder .* can't be read: Permission denied"):
        load(tmp_path)


def load_nothing(bundle: Bundle) -> Model:
    raise AssertionError(f"{bundle.path} was loaded")


def test_a_device_that_fails_ends_what_was_loaded_and_nothing_else(tmp_path: Path) -> None:
    ended: list[str] = []

    def engine(key: str) -> EnginePool:
        return cast(EnginePool, SimpleNamespace(close=lambda: ended.append(key)))

    def load_or_fail(bundle: Bundle) -> Model:
        if bundle.manifest.version == "3":
            raise DeviceUnavailableError("no more memory")
        return replace(model(bundle.manifest.version), engine=engine(bundle.manifest.version))

    for version in ("1", "2", "3"):
        write_bundle(tmp_path, f"de-en/{version}")
    served = Repository([replace(model("1"), engine=engine("1"))], {})
    with pytest.raises(DeviceUnavailableError):
        load_repository(tmp_path, load_or_fail, served)
    assert ended == ["2"]


def test_what_the_engine_or_the_folder_lacks_is_told(tmp_path: Path) -> None:
    write_bundle(tmp_path, "de-en/1")
    assert not load(tmp_path, max_source_tokens=64).refused
    with pytest.raises(RepositoryError, match=r"de-en/1: .* 64 tokens, .* max_source_tokens is 63"):
        load(tmp_path, max_source_tokens=63)
    with pytest.raises(RepositoryError, match="fp16"):
        load(tmp_path, precision="fp16")
    with pytest.raises(RepositoryError, match="nowhere does not exist"):
        load(tmp_path / "nowhere")


def test_a_missing_device_is_no_fault_of_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    write_bundle(tmp_path, "de-en/1")
    with pytest.raises(DeviceUnavailableError):
        load(tmp_path, device="cuda")


def closest(wanted: str, *available: str) -> str | None:
    """Of the languages that there are."""
    found = {there: distance(wanted, there) for there in available}
    served = {there: distance for there, distance in found.items() if distance is not None}
    return min(served, key=lambda there: served[there], default=None)


@pytest.mark.parametrize(
    "wanted",
    [
        *("de", "DE", " de ", "de\n", "de-DE", "de_DE", "de-DE-1996", "deu", "ger", "DEU_de", "de-Latn-AT"),
        *("de-x-formal", "de-DE-u-co-phonebk", "de-CH-1901-x-a-b"),
    ],
)
def test_a_language_is_found_however_it_is_written(wanted: str) -> None:
    assert closest(wanted, "en", "de", "nl") == "de"


@pytest.mark.parametrize(
    ("wanted", "available", "expected"),
    [
        # The range loses its end until there is one of it.
        ("zh-Hant-TW", ("zh", "zh-Hant", "zh-Hant-TW"), "zh-Hant-TW"),
        ("zh-Hant-HK", ("zh", "zh-Hant", "zh-Hant-TW"), "zh-Hant"),
        ("pt-BR", ("pt-PT", "pt", "pt-BR"), "pt-BR"),
        ("pt-BR", ("pt-PT", "pt"), "pt"),
        ("de-1901", ("de-1996", "de", "de-1901"), "de-1901"),
        ("sl-rozaj-biske", ("sl", "sl-rozaj"), "sl-rozaj"),
        # Then what is more special, and then what another region writes.
        ("en", ("de", "en-GB"), "en-GB"),
        ("eng", ("en_GB",), "en_GB"),
        ("en-US", ("en-GB", "de"), "en-GB"),
        ("es-MX", ("es-ES", "es-419", "es"), "es"),
        # What is no tag is found as it is.
        ("cat_oci_spa", ("ca", "cat_oci_spa"), "cat_oci_spa"),
        ("CAT-oci-spa", ("cat_oci_spa",), "cat_oci_spa"),
        # What is called otherwise today, and what stands for itself.
        ("iw", ("he",), "he"),
        ("zh-yue", ("zh", "yue"), "yue"),
        ("zh-cmn-Hans", ("zh",), "zh"),
        ("cmn-Hans", ("zh-Hans",), "zh-Hans"),
    ],
)
def test_the_closest_is_taken(wanted: str, available: tuple[str, ...], expected: str) -> None:
    assert closest(wanted, *available) == expected
    assert closest(wanted, *reversed(available)) == expected


@pytest.mark.parametrize(
    ("wanted", "available"),
    [
        ("zh-Hant", "zh-Hans"),
        ("zh-Hant", "zh"),
        ("zh-TW", "zh-Hans"),
        ("zh-TW", "zh-CN"),
        ("zh-TW", "zh"),
        ("zh-Hans", "zh-Hant"),
        ("zh", "zh-Hant"),
        ("sr-Latn", "sr"),
        ("uz-Cyrl", "uz"),
        ("ja-Latn", "ja"),
        ("pa-PK", "pa"),
        ("de-1901", "de-1996"),
        ("ca", "ca-valencia"),
        ("ca", "cat_oci_spa"),
        ("ca-oci", "ca"),
        ("yue", "zh"),
        ("d", "de"),
        ("deutsch", "de"),
        ("de-", "de"),
        ("de--DE", "de"),
        ("en", "de"),
        ("", "de"),
        ("-", "de"),
        ("de" * 10_000, "de"),
    ],
)
def test_another_language_script_or_variant_is_never_taken(wanted: str, available: str) -> None:
    assert distance(wanted, available) is None


@pytest.mark.parametrize(
    ("wanted", "available"), [("zh-CN", "zh"), ("zh-CN", "zh-Hans"), ("zh-SG", "zh"), ("zh-HK", "zh-TW")]
)
def test_a_region_tells_the_script(wanted: str, available: str) -> None:
    assert distance(wanted, available) is not None
