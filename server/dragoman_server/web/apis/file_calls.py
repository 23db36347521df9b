"""Calls that bring a file: LibreTranslate's, and /v1's, which tells its progress. The translation is kept."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import TypeVar

from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.engine import DeadlineExpiredError
from dragoman_server.errors import TooManyDocumentsError, UnwantedError
from dragoman_server.service.call import Call
from dragoman_server.service.core import ServiceCore
from dragoman_server.turns import BusyThreadsError
from dragoman_server.wanted import Wanted
from dragoman_server.web.apis.contract import describe_error, parse_message
from dragoman_server.web.apis.file_translation import FileTranslation, translate_file
from dragoman_server.web.apis.files import FileTexts, open_file, options_of
from dragoman_server.web.apis.kept_files import KeptFiles
from dragoman_server.web.apis.libretranslate import source_of, token_of
from dragoman_server.web.events import EventStream, WriteEvent
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import Fields, read_json, refusal

T = TypeVar("T")


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
            file = await _read(exchange.core, call, fields, config)
            done = await translate_file(exchange.core, call, file, config)
            path = await self._keep(exchange.core, call, file, done, config)
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
                file = await _read(exchange.core, call, fields, config)
                done = await translate_file(exchange.core, call, file, config, progress)
                path = await self._keep(exchange.core, call, file, done, config)
                message = {
                    "path": path,
                    "name": file.translated_name(config.target_language),
                    "failed": done.failed,
                    "sourceLanguage": done.source_language,
                    "model": f"{done.model.name}/{done.model.version}" if done.model.name else "",
                }
                await write("file", json.dumps(message))

        return EventStream(produce, lambda error: json.dumps({"error": describe_error(error)}))

    async def _keep(
        self,
        core: ServiceCore,
        call: Call,
        file: FileTexts,
        done: FileTranslation,
        config: pb.TranslateStreamConfig,
    ) -> str:
        content = await _at_document(core, call, lambda wanted: file.write(done.translations, wanted.check))
        return self._files.keep(file.translated_name(config.target_language), content)


async def _read(core: ServiceCore, call: Call, fields: Fields, config: pb.TranslateStreamConfig) -> FileTexts:
    """Raises InvalidRequestError, and as `_at_document`."""
    file = fields.files.get("file")
    if file is None or not file.name:
        raise refusal("file", "is required, as a part of a multipart form with a file name")
    options = options_of(fields)
    max_bytes = core.limits.max_http_body_bytes
    return await _at_document(
        core,
        call,
        lambda wanted: open_file(
            file,
            options,
            max_bytes=max_bytes,
            source_language=config.source_language,
            target_language=config.target_language,
            check=wanted.check,
        ),
    )


async def _at_document(core: ServiceCore, call: Call, work: Callable[[Wanted], T]) -> T:
    """The result of the work on a document, which ends with its call or when it has taken too long.

    Raises TooManyDocumentsError and DeadlineExpiredError.
    """
    seconds = core.limits.max_document_seconds
    wanted = Wanted(time.monotonic() + seconds, call.wanted.caller)
    try:
        async with asyncio.timeout(seconds):
            return await core.documents.run(wanted.caller, lambda: work(wanted))
    except BusyThreadsError:
        raise TooManyDocumentsError from None
    except (TimeoutError, UnwantedError):
        raise DeadlineExpiredError(
            f"the file took more than the {seconds:g} seconds that this server gives one to be read or "
            "written; cut it up"
        ) from None
    finally:
        wanted.drop()
