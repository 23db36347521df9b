"""Calls that bring a file: LibreTranslate's, and /v1's, which tells its progress. The translation is kept.

A file's texts go through the core's stream as a job's do. Translations wait to be fetched, each for a while,
under names that nobody guesses.
"""

import asyncio
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from urllib.parse import quote as quote_url

from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits
from dragoman_server.engine import DeadlineExpiredError
from dragoman_server.errors import TooManyDocumentsError, UnwantedError, refusal
from dragoman_server.service.call import Call
from dragoman_server.service.core import ServiceCore
from dragoman_server.turns import BusyThreadsError
from dragoman_server.wanted import Wanted
from dragoman_server.web.apis.contract import describe_error, parse_message
from dragoman_server.web.apis.files import FileTexts, open_file, options_of
from dragoman_server.web.apis.libretranslate import source_of, token_of
from dragoman_server.web.apis.translating import all_languages
from dragoman_server.web.endpoint import EventStream, WriteEvent
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import Fields, read_json


class _File(NamedTuple):
    name: str
    content: bytes
    until: float


class KeptFiles:
    """The files, by path."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._files: OrderedDict[str, _File] = OrderedDict()

    def keep(self, name: str, content: bytes) -> str:
        """Keeps it, and returns the path that it is fetched at."""
        key = uuid.uuid4().hex
        until = time.monotonic() + self._limits.max_kept_file_seconds
        self._files[key] = _File(name, content, until)
        self._forget()
        return f"download_file/{key}"

    async def download(self, exchange: Exchange) -> Response:
        """GET /download_file/KEY: its name is all that is asked for."""
        self._forget()
        file = self._files.get(exchange.request.path_params["key"])
        if file is None:
            seconds = f"{self._limits.max_kept_file_seconds:g}"
            return JSONResponse({"error": f"there is no such file; one is kept for {seconds} seconds"}, 404)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote_url(file.name, safe='')}",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(file.content, media_type="application/octet-stream", headers=headers)

    def _forget(self) -> None:
        now, maximum = time.monotonic(), self._limits.max_kept_file_bytes
        num_bytes = sum(len(file.content) for file in self._files.values())
        for key, file in list(self._files.items()):
            if file.until >= now and (num_bytes <= maximum or len(self._files) == 1):
                break
            num_bytes -= len(file.content)
            del self._files[key]


Progress = Callable[[int, int], Awaitable[None]]
"""Told how many texts are done, and of how many."""

_ITEMS_PER_MESSAGE = 64
_DETECTION_CHARACTERS = 1_000


@dataclass(frozen=True, kw_only=True)
class FileTranslation:
    """The translated texts of a file, and how many failed."""

    translations: Sequence[str | None]
    """A translation for each text; None for a text without letters, and for one that failed."""
    failed: int
    source_language: str
    model: pb.ModelReference


async def _nothing(done: int, total: int) -> None:
    """Where nobody asks for progress."""


async def translate_file(
    core: ServiceCore,
    call: Call,
    file: FileTexts,
    config: pb.TranslateStreamConfig,
    progress: Progress = _nothing,
) -> FileTranslation:
    """All its texts as the config says; without a source language in it, from that of the file's beginning.

    Raises InvalidRequestError with the first text's error if all failed, and what the core raises.
    """
    units = file.units
    call.allowance.check_today(sum(len(unit.text) for unit in units), "file")
    asked = pb.TranslateStreamConfig()
    asked.CopyFrom(config)
    asked.source_language = config.source_language or await _detect(core, call, file, config.target_language)
    if file.is_markup:
        asked.text_format = pb.TEXT_FORMAT_HTML
    translations: list[str | None] = [None] * len(units)
    errors: list[str] = []
    done = 0
    model = pb.ModelReference()

    async def messages() -> AsyncIterator[pb.TranslateStreamRequest]:
        yield pb.TranslateStreamRequest(config=asked)
        await progress(0, len(units))
        for start in range(0, len(units), _ITEMS_PER_MESSAGE):
            items = [
                pb.TranslateStreamItem(id=str(start + rank), text=unit.text)
                for rank, unit in enumerate(units[start : start + _ITEMS_PER_MESSAGE])
            ]
            yield pb.TranslateStreamRequest(items=pb.TranslateStreamItems(items=items))

    async def write(response: pb.TranslateStreamResponse) -> None:
        nonlocal done
        rank = int(response.id)
        if response.HasField("error"):
            errors.append(response.error.message)
        elif units[rank].error is None and units[rank].text:
            translations[rank] = response.translation.text
        model.CopyFrom(response.model)
        done += 1
        # A hundred times at most.
        if done * 100 // len(units) > (done - 1) * 100 // len(units):
            await progress(done, len(units))

    await core.translate_stream(messages(), write, call)
    if errors and len(errors) == len(units):
        raise refusal("file", errors[0])
    pairs = zip(units, translations, strict=True)
    failed = sum(translation is None and bool(unit.text) for unit, translation in pairs)
    return FileTranslation(
        translations=translations, failed=failed, source_language=asked.source_language, model=model
    )


async def _detect(core: ServiceCore, call: Call, file: FileTexts, target: str) -> str:
    """The language of a file's beginning. Raises InvalidRequestError."""
    maximum = min(_DETECTION_CHARACTERS, core.limits.max_text_characters)
    beginning, num_characters = [], 0
    for unit in file.units:
        beginning.append(unit.text)
        num_characters += len(unit.text)
        if num_characters >= maximum:
            break
    request = pb.DetectLanguageRequest(texts=[" ".join(beginning)[:maximum]], target_language=target)
    detected = (await core.detect_language(request, call)).texts[0]
    if not detected.language:
        served = ", ".join(all_languages(core.models))
        raise refusal("source", f"is auto, and the file is in none of the languages served: {served}")
    return detected.language


T = TypeVar("T")


class FileCalls(KeptFiles):
    """The handlers of both calls, over the files that are kept."""

    async def libretranslate(self, exchange: Exchange) -> Response:
        """POST /translate_file, as LibreTranslate's clients call it."""
        fields = await exchange.fields()
        async with exchange.open_call("TranslateFile", token=token_of(fields)) as call:
            config = pb.TranslateStreamConfig(
                source_language=source_of(fields), target_language=fields.required_string("target")
            )
            path, _, done = await self._translate(exchange.core, call, fields, config)
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
                path, name, done = await self._translate(exchange.core, call, fields, config, progress)
                message = {
                    "path": path,
                    "name": name,
                    "failed": done.failed,
                    "sourceLanguage": done.source_language,
                    "model": f"{done.model.name}/{done.model.version}" if done.model.name else "",
                }
                await write("file", json.dumps(message))

        return EventStream(produce, lambda error: json.dumps({"error": describe_error(error)}))

    async def _translate(
        self,
        core: ServiceCore,
        call: Call,
        fields: Fields,
        config: pb.TranslateStreamConfig,
        progress: Progress = _nothing,
    ) -> tuple[str, str, FileTranslation]:
        """The path that the translated file is fetched at, its name, and what became of its texts."""
        file = await _read(core, call, fields, config)
        done = await translate_file(core, call, file, config, progress)
        content = await _at_document(core, call, lambda wanted: file.write(done.translations, wanted.check))
        name = file.translated_name(config.target_language)
        return self.keep(name, content), name, done


async def _read(core: ServiceCore, call: Call, fields: Fields, config: pb.TranslateStreamConfig) -> FileTexts:
    """Raises InvalidRequestError, and as `_at_document`."""
    file = fields.files.get("file")
    if file is None or not file.name:
        raise refusal("file", "is required, as a part of a multipart form with a file name")
    options = options_of(fields)

    def work(wanted: Wanted) -> FileTexts:
        return open_file(
            file,
            options,
            max_bytes=core.limits.max_http_body_bytes,
            source_language=config.source_language,
            target_language=config.target_language,
            check=wanted.check,
        )

    return await _at_document(core, call, work)


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
        limit = f"the {seconds:g} seconds that this server gives one to be read or written"
        raise DeadlineExpiredError(f"the file took more than {limit}; cut it up") from None
    finally:
        wanted.drop()
