"""The page at /, which loads nothing from elsewhere and calls /v1; and OpenAPI 3.1, with /v1's messages."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.web.apis.files import suffixes
from dragoman_server.web.apis.translating import targets_by_source
from dragoman_server.web.endpoint import Handle
from dragoman_server.web.exchange import Exchange

_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_FOLDER = Path(__file__).parent / "static"
FILES = {
    "/": "index.html",
    **{f"/page/{path.name}": path.name for path in sorted(_FOLDER.iterdir()) if path.suffix in _KINDS},
}
"""The page's files by path."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def file(name: str) -> Handle:
    path = _FOLDER / name
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}

    async def handle(exchange: Exchange) -> Response:
        if exchange.request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_KINDS[path.suffix], headers=headers)

    return handle


async def settings(exchange: Exchange) -> Response:
    """GET /page/settings: limits that the page tells before a request meets them, a target, the version."""
    core, limits = exchange.core, exchange.core.limits
    pairs = targets_by_source(core)
    return JSONResponse(
        {
            "fileSuffixes": suffixes(),
            "maxBodyBytes": limits.max_http_body_bytes,
            "maxTextCharacters": limits.max_text_characters,
            "pivotLanguage": core.pivot or "",
            # Where the browser's own languages are none: as LibreTranslate's settings propose it.
            "targetLanguage": next((targets[0] for targets in pairs.values() if targets), ""),
            "version": version("dragoman"),
        },
        headers={"Cache-Control": "no-cache"},
    )


# Where protobuf's mapping to JSON is another than the fields' own.
_WELL_KNOWN: dict[str, dict[str, Any]] = {
    "google.protobuf.Duration": {"type": "string", "examples": ["0.015s"]},
    "google.protobuf.Any": {"type": "object"},
}
_SCHEMAS: dict[int, dict[str, Any]] = {
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
    return JSONResponse(_description())


def _description() -> dict[str, Any]:
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
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        schemas[descriptor.name] = schema
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
        kind = _SCHEMAS[field.cpp_type]
    return {"type": "array", "items": kind} if field.is_repeated else kind
