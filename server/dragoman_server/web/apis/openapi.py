"""OpenAPI 3.1: of /v1 made from the messages themselves, of others' APIs from a table of their fields."""

import re
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
_POSTED: tuple[tuple[str, str, str, str, str], ...] = (
    ("/v1/translate", "Translate", "TranslateRequest", "TranslateResponse", "Translates texts."),
    ("/v1/align", "AlignTexts", "AlignTextsRequest", "AlignTextsResponse", "Links words of translations."),
    (
        "/v1/detect",
        "DetectLanguage",
        "DetectLanguageRequest",
        "DetectLanguageResponse",
        "Detects languages.",
    ),
)
_FETCHED: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "/v1/models",
        "ListModels",
        "ListModelsResponse",
        "Lists models.",
        ("sourceLanguage", "targetLanguage"),
    ),
    ("/v1/models/{name}", "GetModel", "GetModelResponse", "Describes a model.", ()),
    ("/v1/glossaries", "ListGlossaries", "ListGlossariesResponse", "Lists glossaries.", ()),
)
_STRING, _FLAG = {"type": "string"}, {"type": "boolean"}
_STRINGS = {"type": "array", "items": _STRING}
_TEXTS = {"oneOf": [_STRING, _STRINGS]}
_FILE = {"type": "string", "contentMediaType": "application/octet-stream"}
# Method, path, what it does, its fields, and those of these that must be there.
_OTHERS: tuple[tuple[str, str, str, dict[str, Any], tuple[str, ...]], ...] = (
    (
        "post",
        "/translate",
        "LibreTranslate: translates texts.",
        {
            "q": _TEXTS,
            "source": _STRING,
            "target": _STRING,
            "format": {"enum": ["text", "html"]},
            "alternatives": {"type": "integer", "minimum": 0},
            "api_key": _STRING,
        },
        ("q", "source", "target"),
    ),
    ("post", "/detect", "LibreTranslate: detects a language.", {"q": _STRING, "api_key": _STRING}, ("q",)),
    (
        "post",
        "/translate_file",
        "LibreTranslate: translates a file.",
        {"file": _FILE, "source": _STRING, "target": _STRING, "api_key": _STRING},
        ("file", "source", "target"),
    ),
    ("get", "/languages", "LibreTranslate: lists languages.", {}, ()),
    ("get", "/frontend/settings", "LibreTranslate: the settings of its page.", {}, ()),
    ("get", "/health", "LibreTranslate: whether calls are taken.", {}, ()),
    (
        "post",
        "/v2/translate",
        "DeepL: translates texts.",
        {
            "text": _TEXTS,
            "source_lang": _STRING,
            "target_lang": _STRING,
            "tag_handling": {"enum": ["html", "xml"]},
            "ignore_tags": _STRINGS,
            "split_sentences": {"enum": ["0", "1", "nonewlines"]},
            "glossary_id": _STRING,
            "glossary_ids": _STRINGS,
            "context": _STRING,
            "formality": {"enum": ["default", "prefer_less", "prefer_more"]},
            "preserve_formatting": _FLAG,
            "outline_detection": _FLAG,
        },
        ("text", "target_lang"),
    ),
    ("get", "/v2/languages", "DeepL: lists languages.", {"type": {"enum": ["source", "target"]}}, ()),
    ("get", "/v2/usage", "DeepL: the caller's characters of today.", {}, ()),
    ("get", "/v2/glossaries", "DeepL: lists glossaries.", {}, ()),
    ("get", "/v2/glossary-language-pairs", "DeepL: the languages of glossaries.", {}, ()),
)


async def openapi(exchange: Exchange) -> Response:
    """GET /openapi.json, and LibreTranslate's /spec."""
    return JSONResponse(describe())


def describe() -> dict[str, Any]:
    """The document."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for path, name, request, response, summary in _POSTED:
        paths[path] = {
            "post": {
                **_operation(name, summary, _content(_message_type(response), schemas)),
                "requestBody": {"required": True, "content": _content(_message_type(request), schemas)},
            }
        }
    messages = {"type": "array", "items": _message(_message_type("TranslateStreamRequest"), schemas)}
    event = {"text/event-stream": {"schema": _message(_message_type("TranslateStreamResponse"), schemas)}}
    summary = "Translates texts; each result is an event as it completes, and the last event is end or error."
    paths["/v1/translateStream"] = {
        "post": {
            **_operation("TranslateStream", summary, event),
            "requestBody": {"required": True, "content": {"application/json": {"schema": messages}}},
        }
    }
    paths["/v1/translateFile"] = {"post": _translate_file(schemas)}
    for path, name, response, summary, parameters in _FETCHED:
        described: list[dict[str, Any]] = [
            {"name": parameter, "in": "query", "schema": {"type": "string"}} for parameter in parameters
        ]
        if "{name}" in path:
            described.append({"name": "name", "in": "path", "required": True, "schema": {"type": "string"}})
        operation = _operation(name, summary, _content(_message_type(response), schemas))
        paths[path] = {"get": {**operation, "parameters": described}}
    for method, path, summary, fields, required in _OTHERS:
        paths[path] = {method: _other(method, path, summary, fields, required)}
    schemas["Error"] = {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "integer"},
                    "status": {"type": "string"},
                    "message": {"type": "string"},
                    "details": {"type": "array", "items": {"type": "object"}},
                },
            }
        },
    }
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


def _other(
    method: str, path: str, summary: str, fields: dict[str, Any], required: tuple[str, ...]
) -> dict[str, Any]:
    """An operation of somebody else's API."""
    content: dict[str, Any] = {"application/json": {"schema": {}}}
    operation = _operation(re.sub(r"\W+", "_", path).strip("_"), summary, content)
    operation["responses"]["default"]["content"] = content
    if method == "get":
        named = [{"name": field, "in": "query", "schema": schema} for field, schema in fields.items()]
        return {**operation, "parameters": named}
    form = {"schema": {"type": "object", "properties": fields, "required": list(required)}}
    kinds = ["application/json", "application/x-www-form-urlencoded"]
    body = dict.fromkeys(["multipart/form-data"] if "file" in fields else kinds, form)
    return {**operation, "requestBody": {"required": True, "content": body}}


def _translate_file(schemas: dict[str, Any]) -> dict[str, Any]:
    strings = {"type": "array", "items": {"type": "string"}}
    form = {
        "type": "object",
        "required": ["file", "config"],
        "properties": {
            "file": {"type": "string", "contentMediaType": "application/octet-stream"},
            "config": _message(_message_type("TranslateStreamConfig"), schemas),
            "columns": strings,
            "keys": strings,
            "joinLines": {"type": "boolean"},
        },
    }
    summary = (
        "Translates a file. Events: progress (done, total), then file (path, name, failed, sourceLanguage, "
        "model) and end, or error."
    )
    event = {"text/event-stream": {"schema": {"type": "object"}}}
    return {
        **_operation("TranslateFile", summary, event),
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}},
    }


def _message_type(name: str) -> Descriptor:
    found: Descriptor = pb.DESCRIPTOR.message_types_by_name[name]
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
