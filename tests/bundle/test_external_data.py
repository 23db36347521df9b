"""A graph takes its tensors from files that the manifest vouches for, and from no others."""

import random
from pathlib import Path

import onnx
import pytest
from dragoman_bundle import BundleFileError, open_bundle
from dragoman_bundle.checked_files import FIELDS, external_files
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from onnx import TensorProto, helper
from tests.bundle.conftest import reseal


def tensor(*locations: str) -> TensorProto:
    made = TensorProto(name="w", dims=[2], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in (("offset", "0"), *(("location", name) for name in locations), ("length", "8")):
        made.external_data.add(key=key, value=value)
    return made


def graph(*initializers: TensorProto, nodes: tuple[onnx.NodeProto, ...] = ()) -> onnx.GraphProto:
    return helper.make_graph(nodes, "graph", [], [], initializer=initializers)


def constant(value: TensorProto) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["c"], value=value)


def sparse() -> onnx.ModelProto:
    model = helper.make_model(graph())
    made = model.graph.sparse_initializer.add()
    made.values.CopyFrom(tensor("a"))
    made.indices.CopyFrom(tensor("b"))
    return model


BRANCH = helper.make_node("If", ["x"], ["y"], then_branch=graph(tensor("a")), else_branch=graph(tensor("b")))
FUNCTION = helper.make_function("f", "F", [], ["c"], [constant(tensor("a"))], [])

MODELS = {
    "none": (helper.make_model(graph(TensorProto(raw_data=b"location" * 9))), set()),
    "initializer": (helper.make_model(graph(tensor("weights.bin"), tensor("b"))), {"weights.bin", "b"}),
    "node": (helper.make_model(graph(nodes=(constant(tensor("a")),))), {"a"}),
    "branches": (helper.make_model(graph(nodes=(BRANCH,))), {"a", "b"}),
    "sparse": (sparse(), {"a", "b"}),
    "function": (helper.make_model(graph(), functions=[FUNCTION]), {"a"}),
    "two places": (helper.make_model(graph(tensor("a", "b"))), {"a", "b"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_file_that_a_graph_names_is_found(tmp_path: Path, name: str) -> None:
    model, expected = MODELS[name]
    (tmp_path / "graph.onnx").write_bytes(model.SerializeToString())
    assert external_files(tmp_path / "graph.onnx") == expected


def leads_to_tensors(message: Descriptor, seen: frozenset[str] = frozenset()) -> bool:
    if message.name == "TensorProto":
        return True
    return message.name not in seen and any(
        leads_to_tensors(field.message_type, seen | {message.name})
        for field in message.fields
        if field.type == FieldDescriptor.TYPE_MESSAGE
    )


def test_no_way_to_a_tensor_in_onnx_s_own_description_is_missed() -> None:
    found = {"TensorProto": {TensorProto.EXTERNAL_DATA_FIELD_NUMBER: "StringStringEntryProto"}}
    waiting = [onnx.ModelProto.DESCRIPTOR]
    while waiting:
        message = waiting.pop()
        if message.name in found:
            continue
        found[message.name] = {}
        for field in message.fields:
            if field.type == FieldDescriptor.TYPE_MESSAGE and leads_to_tensors(field.message_type):
                found[message.name][field.number] = field.message_type.name
                waiting.append(field.message_type)
    assert found == FIELDS


def names_or_refusal(path: Path) -> set[str] | str:
    try:
        return external_files(path)
    except ValueError as error:
        return str(error)


def test_what_is_no_graph_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "graph.onnx"
    content = helper.make_model(graph(tensor("weights.bin"))).SerializeToString()
    for end in range(1, len(content)):
        path.write_bytes(content[:end])
        # Where a field ends, what is left is a smaller model.
        found = names_or_refusal(path)
        assert "it is no graph" in found or found in (set(), {"weights.bin"})
    generator = random.Random(1)
    for _ in range(500):
        path.write_bytes(generator.randbytes(64))
        assert isinstance(names_or_refusal(path), str | set)


def within(number: int, content: bytes) -> bytes:
    """A message as a field of another."""
    size, length = b"", len(content)
    while length > 0x7F:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def test_graphs_within_graphs_without_end_are_refused(tmp_path: Path) -> None:
    content = b""
    for _ in range(2_000):
        # A graph of a node with an attribute that is a graph.
        content = within(1, within(5, within(6, content)))
    (tmp_path / "graph.onnx").write_bytes(within(7, content))
    with pytest.raises(ValueError, match="more than 100 messages within each other"):
        external_files(tmp_path / "graph.onnx")


def with_graph(folder: Path, *locations: str) -> Path:
    """The bundle with a graph that names these files, and checksums of all that is listed."""
    content = helper.make_model(graph(*map(tensor, locations))).SerializeToString()
    (folder / "int8" / "encoder.onnx").write_bytes(content)
    reseal(folder)
    return folder


@pytest.mark.parametrize("name", ["weights.bin", "./weights.bin", "more/weights.bin"])
def test_a_file_that_is_listed_may_be_named(bundle_folder: Path, name: str) -> None:
    (bundle_folder / "int8" / name).parent.mkdir(exist_ok=True)
    (bundle_folder / "int8" / name).write_bytes(bytes(8))
    assert open_bundle(with_graph(bundle_folder, name)).path == bundle_folder


def test_a_file_that_is_not_listed_is_refused(bundle_folder: Path) -> None:
    with_graph(bundle_folder, "other.bin")
    (bundle_folder / "int8" / "other.bin").write_bytes(bytes(8))
    with pytest.raises(BundleFileError, match=r"int8/encoder\.onnx takes tensors from 'other\.bin', which"):
        open_bundle(bundle_folder)


@pytest.mark.parametrize(
    "name",
    [
        *("../shared.spm", "../int8/decoder_step.onnx", "x/../decoder_step.onnx", "/etc/hostname", ".."),
        *("", "shared.spm", "..\\shared.spm", "*/_ORT_MEM_ADDR_/*"),
    ],
)
def test_a_way_out_of_the_graph_s_folder_is_refused(bundle_folder: Path, name: str) -> None:
    with pytest.raises(BundleFileError, match="which is not among the manifest's files"):
        open_bundle(with_graph(bundle_folder, name))


def test_bytes_that_are_no_graph_are_refused(bundle_folder: Path) -> None:
    (bundle_folder / "int8" / "encoder.onnx").write_bytes(b"fp32 encoder" * 99)
    reseal(bundle_folder)
    with pytest.raises(BundleFileError, match=r"encoder\.onnx can't be read as a graph: it is no graph"):
        open_bundle(bundle_folder)
