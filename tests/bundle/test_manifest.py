"""The manifest's JSON is read strictly: whatever is wrong is named."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from dragoman_bundle import Manifest, ManifestError
from dragoman_bundle.manifest import FORMAT_VERSION
from tests.shipped import shipped_bundle

Edit = Callable[[dict[str, Any]], object]


def test_manifest_round_trips(manifest: Manifest) -> None:
    assert Manifest.from_json(manifest.to_json()) == manifest


def past(manifest: dict[str, Any], name: str, padded_behind: list[str]) -> dict[str, Any]:
    """A state of a manifest's, as one that grows."""
    shape = {"shape": ["P", "U", 4], "growth_axis": 1, "padded_behind": padded_behind}
    return manifest["contract"]["state"][0] | shape | {"name": f"state.{name}"}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.update(format_version=9), "is 9, and this release reads 1, 2, 3, 4, 5, 6, 7, 8;"),
        (lambda m: m.update(format_version=9, novelty=True), "format_version is 9, and this release reads 1"),
        (lambda m: m.update(language_token=">>fr<<"), "language_token needs source_pieces"),
        (
            lambda m: m["contract"]["state"][0].update(padded_behind=["fp32"], growth_axis=None),
            "is padded behind in fp32, and has no growth_axis",
        ),
        (
            lambda m: m["contract"].update(state=[past(m, "a", ["fp32"]), past(m, "b", [])]),
            "has pasts that are padded behind and others that are not",
        ),
        (lambda m: m.pop("format_version"), "key 'format_version' is missing"),
        (lambda m: m.update(licens="x"), r'unknown key "manifest\.licens"; did you mean "manifest\.licence"'),
        (lambda m: m.pop("licence"), "manifest\\.licence: is missing"),
        (lambda m: m["decoding"].update(beam=5), r'unknown key "manifest\.decoding\.beam"; '),
        (lambda m: m["decoding"].pop("beam_size"), r"manifest\.decoding\.beam_size: is missing"),
        (lambda m: m["decoding"].update(beam_size="5"), r"beam_size: must be a whole number, not '5'"),
        (lambda m: m["decoding"].update(beam_size=True), r"beam_size: must be a whole number, not True"),
        (lambda m: m["decoding"].update(beam_size=0), r"decoding\.beam_size is 0; it must be from 1 to"),
        (lambda m: m["decoding"].update(max_source_tokens=10**13), "_tokens is 10+; it must be from"),
        (lambda m: m["decoding"].update(length_penalty=400), "penalty is 400.0; it must be from 0 to 10"),
        (lambda m: m["decoding"].update(length_penalty=10**400), r"length_penalty: has 401 digits"),
        (lambda m: m["decoding"].update(max_output_ratio=-1), "max_output_ratio is -1.0; it must be from 0"),
        (lambda m: m["contract"]["state"][0].pop("dtype"), r"contract\.state\[0\]\.dtype: is missing"),
        (lambda m: m["contract"]["memory"][0].update(shape=[1.5]), "must be a whole number or text, not 1.5"),
        (lambda m: m["contract"].update(memory={}), r"contract\.memory: must be a list, not {}"),
        (lambda m: m.update(architecture="luong"), "architecture: must be a table, not 'luong'"),
        (lambda m: m.update(name="../de-en"), r"name is '\.\./de-en'; it takes letters"),
        (lambda m: m.update(version=1), "version: must be text, not 1"),
        (lambda m: m.update(precisions=[]), "precisions is empty"),
        (lambda m: m.update(precisions=["int4"]), "precision 'int4' is unknown; known are fp32, int8, fp16"),
    ],
)
def test_wrong_key_or_value_is_named(manifest: Manifest, edit: Edit, message: str) -> None:
    value = json.loads(manifest.to_json())
    edit(value)
    with pytest.raises(ManifestError, match=message):
        Manifest.from_json(json.dumps(value))


@pytest.mark.parametrize(
    ("key", "version", "meant"), [("attention_of_input", 2, False), ("source_end", 5, True)]
)
def test_what_an_older_manifest_does_not_say(manifest: Manifest, key: str, version: int, meant: bool) -> None:
    value = json.loads(manifest.to_json()) | {"format_version": version}
    del value[key]
    assert getattr(Manifest.from_json(json.dumps(value)), key) is meant


@pytest.mark.parametrize("direction", ["de-en", "en-de"])
def test_the_shipped_bundles_of_an_older_format_are_read_and_are_of_one_pair(direction: str) -> None:
    value = json.loads((shipped_bundle(direction) / "manifest.json").read_text()) | {"format_version": 7}
    for key in ("languages", "confidence"):
        value.pop(key, None)
    manifest = Manifest.from_json(json.dumps(value))
    assert manifest.format_version < FORMAT_VERSION
    assert manifest.confidence is None
    assert "-".join((*manifest.sources, *manifest.targets)) == manifest.name


def test_languages_need_the_pieces_of_both_sides(manifest: Manifest) -> None:
    value = json.loads(manifest.to_json()) | {"languages": {"de": "__de__", "en": "__en__"}}
    with pytest.raises(ManifestError, match="languages needs source_pieces and target_pieces"):
        Manifest.from_json(json.dumps(value))
    value |= {"source_pieces": "vocab.json", "target_pieces": "vocab.json"}
    assert Manifest.from_json(json.dumps(value)).between("de", "en").language_token == "__de__"


@pytest.mark.parametrize("text", ["", "{", "[1]", '"manifest"', '{"format_version": NaN}'])
def test_text_that_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        Manifest.from_json(text)
