"""Which files beside it a graph names: those with the tensors that it does not hold itself.

Reads no more of a graph, which is written as Protocol Buffers: serving has no onnx package, and the weights
that a graph holds need not be read to find the others. onnxruntime opens whatever file is named.
"""

import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from dragoman_bundle.checked_files import open_regular

EXTERNAL_DATA = "StringStringEntryProto"
FIELDS = {
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto",
        6: "GraphProto",
        10: "TensorProto",
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    "TensorProto": {13: EXTERNAL_DATA},
}
"""By message of onnx.proto the numbers of the fields that lead to the name of a file, and what they hold."""
MAX_DEPTH = 100
"""Most messages within each other, as of Protocol Buffers' own readers."""

MAX_FIELD_NUMBER = 1 << 29
_VARINT, _LENGTH_DELIMITED = 0, 2
_SIZES = {1: 8, 5: 4}
_KEY, _VALUE = 1, 2


def external_files(graph: Path) -> set[str]:
    """The files that a graph names, as it does: relative to its folder, unless it is up to something.

    Raises OSError, and ValueError where it is no graph.
    """
    with open_regular(graph) as file:
        return set(_walk(file, os.fstat(file.fileno()).st_size, "ModelProto", depth=0))


def _walk(file: BufferedReader, end: int, message: str, *, depth: int) -> Iterator[str]:
    """The names within the message that goes on to the place `end` of the file."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} messages within each other")
    if message == EXTERNAL_DATA:
        yield from _location(file, end)
        return
    for number, field_end in _fields(file, end):
        if number in FIELDS[message]:
            yield from _walk(file, field_end, FIELDS[message][number], depth=depth + 1)


def _location(file: BufferedReader, end: int) -> list[str]:
    """An entry's value, if its key says that it is a place; all of them, if it has several."""
    texts: dict[int, list[bytes]] = {_KEY: [], _VALUE: []}
    for number, field_end in _fields(file, end):
        if number in texts:
            texts[number].append(file.read(field_end - file.tell()))
    return [value.decode() for value in texts[_VALUE]] if b"location" in texts[_KEY] else []


def _fields(file: BufferedReader, end: int) -> Iterator[tuple[int, int]]:
    """The numbers and ends of the fields that have a length; the file then stands where the field begins."""
    while file.tell() < end:
        tag = _read_varint(file)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < MAX_FIELD_NUMBER:
            raise ValueError("it is no graph")
        if wire_type == _VARINT:
            _read_varint(file)
            continue
        if wire_type != _LENGTH_DELIMITED and wire_type not in _SIZES:
            raise ValueError("it is no graph")
        size = _SIZES[wire_type] if wire_type in _SIZES else _read_varint(file)
        field_end = file.tell() + size
        if field_end > end:
            raise ValueError("it is no graph, or only a part of one")
        if wire_type == _LENGTH_DELIMITED:
            yield number, field_end
        file.seek(field_end)
    if file.tell() != end:
        raise ValueError("it is no graph, or only a part of one")


def _read_varint(file: BufferedReader) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise ValueError("it is no graph, or only a part of one")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError("it is no graph")
