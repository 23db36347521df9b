"""The contract as readers and tools want it: commented, named by buf's STANDARD rules, its stubs current."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

PROTO = Path(__file__).parents[2] / "proto"
PASCAL = r"([A-Z][a-z0-9]*)+"
SNAKE = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"
STYLES = {
    "message_type": PASCAL,
    "nested_type": PASCAL,
    "field": SNAKE,
    "oneof_decl": SNAKE,
    "enum_type": PASCAL,
    "value": r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*",
    "service": PASCAL + "Service",
    "method": PASCAL,
}
"""By what a descriptor calls them, the parts of a file that have a name, and the names they may have."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[FileDescriptorProto]:
    out = tmp_path_factory.mktemp("proto") / "files"
    # protobuf's own files come with every compiler: all else is in proto/.
    folders = [PROTO, Path(protoc.__file__).parent / "_proto"]
    arguments = ["protoc", *(f"-I{folder}" for folder in folders), "--include_source_info"]
    arguments += [f"--descriptor_set_out={out}", *map(str, (PROTO / "dragoman").rglob("*.proto"))]
    assert protoc.main(arguments) == 0
    files = list(FileDescriptorSet.FromString(out.read_bytes()).file)
    assert files
    return files


def parts(
    descriptor: Any, name: str = "", path: tuple[int, ...] = ()
) -> Iterator[tuple[str, str, tuple[int, ...], Any]]:
    """All that is declared in it: its kind, its full name, its place in the source, and itself."""
    for kind in descriptor.DESCRIPTOR.fields:
        if kind.name not in STYLES:
            continue
        for number, each in enumerate(getattr(descriptor, kind.name)):
            # A map's entry and the oneof of an `optional` field stand nowhere in the source.
            if kind.name == "nested_type" and each.options.map_entry:
                continue
            if kind.name == "oneof_decl" and each.name.startswith("_"):
                continue
            place = (*path, kind.number, number)
            full = f"{name}.{each.name}".lstrip(".")
            yield kind.name, full, place, each
            yield from parts(each, full, place)


def test_every_part_has_a_comment(files: list[FileDescriptorProto]) -> None:
    for file in files:
        comments = {tuple(each.path): each.leading_comments for each in file.source_code_info.location}
        declared = list(parts(file))
        assert {kind for kind, _, _, _ in declared} >= STYLES.keys() - {"nested_type"}
        assert [name for _, name, place, _ in declared if not comments[place].strip()] == []


def test_names_are_in_the_style_of_their_kind(files: list[FileDescriptorProto]) -> None:
    for file in files:
        wrong = [name for kind, name, _, each in parts(file) if not re.fullmatch(STYLES[kind], each.name)]
        assert wrong == []


def test_a_package_ends_in_its_version_and_lies_in_its_folder(files: list[FileDescriptorProto]) -> None:
    for file in files:
        assert re.fullmatch(rf"({SNAKE}\.)+v[1-9]\d*", file.package)
        assert str(Path(file.name).parent) == file.package.replace(".", "/")
        assert re.fullmatch(SNAKE, Path(file.name).stem)


def test_values_begin_with_their_enum_and_the_first_is_unspecified(files: list[FileDescriptorProto]) -> None:
    enums = [each for file in files for kind, _, _, each in parts(file) if kind == "enum_type"]
    assert enums
    for enum in enums:
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper()
        assert (enum.value[0].name, enum.value[0].number) == (f"{prefix}_UNSPECIFIED", 0)
        assert [value.name for value in enum.value if not value.name.startswith(f"{prefix}_")] == []


def test_a_call_has_a_request_and_a_response_of_its_own_name(files: list[FileDescriptorProto]) -> None:
    for file in files:
        for kind, _, _, call in parts(file):
            if kind == "method":
                own = f".{file.package}.{call.name}"
                assert (call.input_type, call.output_type) == (f"{own}Request", f"{own}Response")


ROOT = PROTO.parent


def check(root):
    command = [sys.executable, str(root / "proto" / "generate.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_stubs_are_current():
    assert check(ROOT).returncode == 0


def test_drift_is_told_by_file(tmp_path):
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    stubs = tmp_path / "clients" / "dragoman" / "v1"
    shutil.copytree(ROOT / "clients" / "dragoman" / "v1", stubs)
    assert check(tmp_path).returncode == 0
    (stubs / "translation_pb2.pyi").write_text("")
    (stubs / "gone_pb2.py").write_text("")
    drifted = check(tmp_path)
    assert drifted.returncode == 1
    assert "translation_pb2.pyi" in drifted.stderr
    assert "gone_pb2.py" in drifted.stderr
    assert "translation_pb2.py " not in drifted.stderr
