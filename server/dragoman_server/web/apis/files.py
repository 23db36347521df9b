"""Files that come over HTTP: read, translated text by text as a job's, and kept for a while to be fetched.

The only part of the server that knows the formats of the client's jobs.
"""

import asyncio
import io
import re
import time
import uuid
import zipfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO
from urllib.parse import quote as quote_url

from starlette.responses import JSONResponse, Response

from dragoman.jobs.content import HEAD_BYTES, check_is_text, check_is_utf8
from dragoman.jobs.errors import JobError, UnitError
from dragoman.jobs.format import Format, FormatOptions, Input
from dragoman.jobs.formats import open_format
from dragoman.jobs.formats.word import WordPackage
from dragoman.jobs.suffixes import input_format, is_compressed, known_suffixes
from dragoman.jobs.unit import Unit
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.call import Call
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.apis.languages import all_languages
from dragoman_server.web.apis.libretranslate import source_of, token_of
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import refusal

MAX_KEPT_BYTES = 64 << 20
"""Of translated files, all together; the oldest make room."""
MAX_KEPT_SECONDS = 600.0
"""How long a translated file can be fetched."""
MAX_UNPACKED_RATIO = 20
"""A document may unpack to so many times the bytes that a request may have."""
_ITEMS_PER_MESSAGE = 64
_DETECTION_CHARACTERS = 1_000


def suffixes() -> list[str]:
    """Of files that are translated."""
    return [".txt", *known_suffixes()]


@dataclass(frozen=True, kw_only=True)
class _Kept:
    name: str
    content: bytes
    until: float


class TranslatedFiles:
    """Those that wait to be fetched, under names that nobody guesses."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def translate(self, exchange: Exchange) -> Response:
        """POST /translate_file, as LibreTranslate's clients call it."""
        fields = await exchange.fields()
        async with exchange.open_call("TranslateFile", token=token_of(fields)) as call:
            file = fields.files.get("file")
            if file is None or not file.name:
                raise refusal("file", "is required, as a part of a multipart form with a file name")
            source, target = source_of(fields), fields.required_string("target")
            name = PurePath(file.name.replace("\\", "/")).name
            work = await asyncio.to_thread(
                _open, name, file.content, exchange.core.limits.max_http_body_bytes
            )
            translations = await _translate(exchange.core, call, work.units, source, target)
            content = await asyncio.to_thread(work.write, translations)
        key = self._keep(_translated_name(name, target), content)
        base = f"{exchange.request.url.scheme}://{exchange.request.url.netloc}"
        failed = sum(
            translation is None and bool(unit.text)
            for unit, translation in zip(work.units, translations, strict=True)
        )
        return JSONResponse({"translatedFileUrl": f"{base}/download_file/{key}", "failed": failed})

    async def download(self, exchange: Exchange) -> Response:
        """GET /download_file/KEY: its name is all that is asked for."""
        self._forget()
        kept = self._kept.get(exchange.request.path_params["key"])
        if kept is None:
            seconds = f"{MAX_KEPT_SECONDS:g}"
            return JSONResponse({"error": f"there is no such file; one is kept for {seconds} seconds"}, 404)
        return Response(
            kept.content,
            media_type="application/octet-stream",
            headers={
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote_url(kept.name, safe='')}",
                "X-Content-Type-Options": "nosniff",
            },
        )

    def _keep(self, name: str, content: bytes) -> str:
        key = uuid.uuid4().hex
        self._kept[key] = _Kept(name=name, content=content, until=time.monotonic() + MAX_KEPT_SECONDS)
        self._forget()
        return key

    def _forget(self) -> None:
        now = time.monotonic()
        num_bytes = sum(len(each.content) for each in self._kept.values())
        for key, each in list(self._kept.items()):
            if each.until >= now and (num_bytes <= MAX_KEPT_BYTES or len(self._kept) == 1):
                break
            num_bytes -= len(each.content)
            del self._kept[key]


@dataclass(frozen=True, kw_only=True)
class _Work:
    """A file that is read."""

    units: Sequence[Unit]
    content: BinaryIO
    is_document: bool
    """Whether it is a zip around its texts."""

    def write(self, translations: Sequence[str | None]) -> bytes:
        """The file with its translations; what has none stays as it is."""
        parts = io.BytesIO()
        for unit, translation in zip(self.units, translations, strict=True):
            try:
                parts.write(unit.write(translation, False))
            except UnitError:
                parts.write(unit.write(None, False))
        if not self.is_document:
            return parts.getvalue()
        packed = io.BytesIO()
        parts.seek(0)
        WordPackage(self.content).pack(parts, packed)
        return packed.getvalue()


def _open(name: str, given: bytes, max_bytes: int) -> _Work:
    """Raises InvalidRequestError for what is no file of its format."""
    content = io.BytesIO(given)
    path = PurePath(name)
    try:
        if is_compressed(path):
            raise JobError(f"{name} is compressed; send it unpacked")
        format_ = open_format(input_format(path, None), FormatOptions())
        _check(format_, name, content, max_bytes)
        source = Input(name=name, stream=content, position=content.tell)
        units = list(format_.units(source))
    except JobError as error:
        raise refusal("file", str(error)) from error
    return _Work(units=units, content=content, is_document=format_.name == "docx")


def _check(format_: Format, name: str, content: BinaryIO, max_bytes: int) -> None:
    """Raises JobError."""
    if format_.name == "docx":
        try:
            with zipfile.ZipFile(content) as archive:
                unpacked = sum(info.file_size for info in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise JobError(f"{name} is no document of Word: {error}") from error
        if unpacked > MAX_UNPACKED_RATIO * max_bytes:
            raise JobError(f"{name} unpacks to {unpacked} bytes; at most {MAX_UNPACKED_RATIO * max_bytes}")
        return
    head = content.read(HEAD_BYTES)
    check_is_text(head, name)
    if not format_.checks_encoding:
        check_is_utf8(head, name)


async def _translate(
    core: ServiceCore, call: Call, units: Sequence[Unit], source: str, target: str
) -> list[str | None]:
    """The translations of units, None for those that failed. Raises what the first says if all failed."""
    call.allowance.check_today(sum(len(unit.text) for unit in units), "file")
    source = source or await _detect(core, units)
    translations: list[str | None] = [None] * len(units)
    errors: list[str] = []

    async def messages() -> AsyncIterator[pb.TranslateStreamRequest]:
        yield pb.TranslateStreamRequest(
            config=pb.TranslateStreamConfig(source_language=source, target_language=target)
        )
        for start in range(0, len(units), _ITEMS_PER_MESSAGE):
            items = [
                pb.TranslateStreamItem(id=str(start + rank), text=unit.text)
                for rank, unit in enumerate(units[start : start + _ITEMS_PER_MESSAGE])
            ]
            yield pb.TranslateStreamRequest(items=pb.TranslateStreamItems(items=items))

    async def write(response: pb.TranslateStreamResponse) -> None:
        rank = int(response.id)
        if response.HasField("error"):
            errors.append(response.error.message)
        elif units[rank].error is None and units[rank].text:
            translations[rank] = response.translation.text

    await core.translate_stream(messages(), write, call)
    if errors and len(errors) == len(units):
        raise refusal("file", errors[0])
    return translations


async def _detect(core: ServiceCore, units: Sequence[Unit]) -> str:
    """The language of a file's beginning. Raises InvalidRequestError."""
    beginning, num_characters = [], 0
    for unit in units:
        beginning.append(unit.text)
        num_characters += len(unit.text)
        if num_characters >= _DETECTION_CHARACTERS:
            break
    request = pb.DetectLanguageRequest(texts=[" ".join(beginning)[:_DETECTION_CHARACTERS]])
    detected = (await core.detect_language(request)).texts[0]
    if not detected.language:
        served = ", ".join(all_languages(core.models))
        raise refusal("source", f"is auto, and the file is in none of the languages served: {served}")
    return detected.language


def _translated_name(name: str, target: str) -> str:
    path = PurePath(name)
    language = re.sub(r"[^\w-]", "", target)
    return f"{path.stem}.{language}{path.suffix}"
