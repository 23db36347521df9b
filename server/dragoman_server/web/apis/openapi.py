"""OpenAPI 3.1, as openapi.json has it; the schemas of /v1 are made of the messages themselves."""

import json
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.web.exchange import Exchange

# Where protobuf's mapping to JSON is another than the fields' own.
_WELL_KNOWN: dict[str, dict[str, Any]] = {
    "google.protobuf.Duration": {"type": "string", "examples": ["0.015s"]},
    "google.protobuf.Any": {"type": "object"},
}
_KINDS: dict[int, dict[str, Any]] = {
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_FLOAT: {"type": "number"},
    FieldDescriptor.CPPTYPE_DOUBLE: {"type": "number"},
    FieldDescriptor.CPPTYPE_INT32: {"type": "integer"},
    FieldDescriptor.CPPTYPE_UINT32: {"type": "integer", "minimum": 0},
    FieldDescriptor.CPPTYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.CPPTYPE_UINT64: {"type": "string", "format": "uint64"},
}
_REFERENCE = "#/components/schemas/"
_WRITTEN = Path(__file__).with_name("openapi.json")


async def openapi(exchange: Exchange) -> Response:
    """GET /openapi.json, and LibreTranslate's /spec."""
    return JSONResponse(describe())


def describe() -> dict[str, Any]:
    """The document, with the schemas of all messages that it refers to."""
    text = _WRITTEN.read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    for method in pb.DESCRIPTOR.services_by_name["TranslationService"].methods:
        for descriptor in (method.input_type, method.output_type):
            if f'{_REFERENCE}{descriptor.name}"' in text:
                _message(descriptor, document["components"]["schemas"])
    return document


def _message(descriptor: Descriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to it, which is among the schemas then, with all that it holds."""
    if descriptor.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[descriptor.full_name]
    if descriptor.name not in schemas:
        # First: a message may hold itself.
        properties: dict[str, Any] = {}
        schemas[descriptor.name] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        for field in descriptor.fields:
            properties[field.json_name] = _field(field, schemas)
    return {"$ref": _REFERENCE + descriptor.name}


def _field(field: FieldDescriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        return {"type": "object", "additionalProperties": _field(value, schemas)}
    if field.message_type is not None:
        kind = _message(field.message_type, schemas)
    elif field.enum_type is not None:
        kind = {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    else:
        kind = _KINDS[field.cpp_type]
    return {"type": "array", "items": kind} if field.is_repeated else kind
