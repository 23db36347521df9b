"""OpenAPI 3.1: of /v1 made from the messages themselves; what is not theirs is written in openapi.json."""

import json
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
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
# Path, call, and what it does.
_POSTED = (
    ("/v1/translate", "Translate", "Translates texts."),
    ("/v1/align", "AlignTexts", "Links words of translations."),
    ("/v1/detect", "DetectLanguage", "Detects languages."),
)
# The same, and what may be asked for.
_FETCHED: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("/v1/models", "ListModels", "Lists models.", ("sourceLanguage", "targetLanguage")),
    ("/v1/models/{name}", "GetModel", "Describes a model.", ()),
    ("/v1/glossaries", "ListGlossaries", "Lists glossaries.", ()),
)
_WRITTEN = Path(__file__).with_name("openapi.json")


async def openapi(exchange: Exchange) -> Response:
    """GET /openapi.json, and LibreTranslate's /spec."""
    return JSONResponse(describe())


def describe() -> dict[str, Any]:
    """The document."""
    written = json.loads(_WRITTEN.read_text(encoding="utf-8"))
    schemas: dict[str, Any] = written["components"]["schemas"]
    paths: dict[str, Any] = written["paths"]
    for path, name, summary in _POSTED:
        paths[path] = {
            "post": {
                **_operation(name, summary, _content(_method(name).output_type, schemas)),
                "requestBody": {"required": True, "content": _content(_method(name).input_type, schemas)},
            }
        }
    stream = _method("TranslateStream")
    messages = {"type": "array", "items": _message(stream.input_type, schemas)}
    event = {"text/event-stream": {"schema": _message(stream.output_type, schemas)}}
    summary = "Translates texts; each result is an event as it completes, and the last event is end or error."
    paths["/v1/translateStream"] = {
        "post": {
            **_operation("TranslateStream", summary, event),
            "requestBody": {"required": True, "content": {"application/json": {"schema": messages}}},
        }
    }
    for path, name, summary, parameters in _FETCHED:
        described: list[dict[str, Any]] = [
            {"name": parameter, "in": "query", "schema": {"type": "string"}} for parameter in parameters
        ]
        if "{name}" in path:
            described.append({"name": "name", "in": "path", "required": True, "schema": {"type": "string"}})
        operation = _operation(name, summary, _content(_method(name).output_type, schemas))
        paths[path] = {"get": {**operation, "parameters": described}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dragoman", "version": "v1"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _method(name: str) -> MethodDescriptor:
    found: MethodDescriptor = pb.DESCRIPTOR.services_by_name["TranslationService"].methods_by_name[name]
    return found


def _operation(name: str, summary: str, content: dict[str, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": "The answer.", "content": content},
            "default": {"description": "Why there is none.", "content": error},
        },
    }


def _content(descriptor: Descriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": _message(descriptor, schemas)}}


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
    return {"$ref": f"#/components/schemas/{descriptor.name}"}


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
