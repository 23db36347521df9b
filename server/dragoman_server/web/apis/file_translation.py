"""The texts of a file, through the core's stream as a job's are, with progress."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.call import Call
from dragoman_server.service.core import ServiceCore
from dragoman_server.web.apis.files import FileTexts
from dragoman_server.web.apis.languages import all_languages
from dragoman_server.web.fields import refusal

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
    """Texts that could not be translated."""
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
    failed = sum(
        translation is None and bool(unit.text) for unit, translation in zip(units, translations, strict=True)
    )
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
