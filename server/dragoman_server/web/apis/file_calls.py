"""Calls that bring a file: LibreTranslate's, and /v1's, which tells its progress. The translation is kept."""

import asyncio
import json

from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.apis.contract import describe_error, parse_message
from dragoman_server.web.apis.file_translation import FileTranslation, translate_file
from dragoman_server.web.apis.files import FileTexts, open_file, options_of
from dragoman_server.web.apis.kept_files import KeptFiles
from dragoman_server.web.apis.libretranslate import source_of, token_of
from dragoman_server.web.events import EventStream, WriteEvent
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import Fields, read_json, refusal


class FileCalls:
    """The handlers of both calls, over the files that are kept."""

    def __init__(self, files: KeptFiles) -> None:
        self._files = files

    async def libretranslate(self, exchange: Exchange) -> Response:
        """POST /translate_file, as LibreTranslate's clients call it."""
        fields = await exchange.fields()
        async with exchange.open_call("TranslateFile", token=token_of(fields)) as call:
            config = pb.TranslateStreamConfig(
                source_language=source_of(fields), target_language=fields.required_string("target")
            )
            file = await _read(exchange.core, fields)
            done = await translate_file(exchange.core, call, file, config)
            path = await self._keep(file, done, config)
        base = f"{exchange.request.url.scheme}://{exchange.request.url.netloc}"
        return JSONResponse({"translatedFileUrl": f"{base}/{path}", "failed": done.failed})

    async def with_progress(self, exchange: Exchange) -> Response:
        """POST /v1/translateFile: events `progress`, then `file`, which says where the translation is."""
        fields = await exchange.fields()

        async def produce(write: WriteEvent) -> None:
            async def progress(done: int, total: int) -> None:
                await write("progress", json.dumps({"done": done, "total": total}))

            async with exchange.open_call("TranslateFile") as call:
                json_config = read_json((fields.string("config") or "{}").encode())
                config = parse_message(json_config, pb.TranslateStreamConfig(), "config")
                file = await _read(exchange.core, fields)
                done = await translate_file(exchange.core, call, file, config, progress)
                path = await self._keep(file, done, config)
                message = {
                    "path": path,
                    "name": file.translated_name(config.target_language),
                    "failed": done.failed,
                    "sourceLanguage": done.source_language,
                    "model": f"{done.model.name}/{done.model.version}" if done.model.name else "",
                }
                await write("file", json.dumps(message))

        return EventStream(produce, lambda error: json.dumps({"error": describe_error(error)}))

    async def _keep(self, file: FileTexts, done: FileTranslation, config: pb.TranslateStreamConfig) -> str:
        content = await asyncio.to_thread(file.write, done.translations)
        return self._files.keep(file.translated_name(config.target_language), content)


async def _read(core: ServiceCore, fields: Fields) -> FileTexts:
    """Raises InvalidRequestError."""
    file = fields.files.get("file")
    if file is None or not file.name:
        raise refusal("file", "is required, as a part of a multipart form with a file name")
    options = options_of(fields)
    return await asyncio.to_thread(open_file, file, options, max_bytes=core.limits.max_http_body_bytes)
