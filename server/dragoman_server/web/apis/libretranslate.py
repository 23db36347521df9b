"""LibreTranslate's API, as its clients call it: github.com/LibreTranslate/LibreTranslate, as of 1.9."""

from collections.abc import Callable

from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import refusal
from dragoman_server.web.apis.files import suffixes
from dragoman_server.web.apis.translating import (
    Answer,
    all_languages,
    language_name,
    targets_by_source,
    translate_texts,
)
from dragoman_server.web.endpoint import Api, Handle, http_status
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import Fields

FORMATS = {"text": pb.TEXT_FORMAT_PLAIN, "html": pb.TEXT_FORMAT_HTML}
FRONTEND_TIMEOUT_MILLISECONDS = 300
"""How long a page waits after the last key."""
# There a key that is nobody's is forbidden, and a language that is not there is a bad request.
_STATUSES = {401: 403, 404: 400}


def _status(error: Exception) -> int:
    status = http_status(error)
    return _STATUSES.get(status, status)


API = Api(name="libretranslate", status=_status, takes_token_in_body=True)
OPEN_API = Api(name="libretranslate", status=_status, is_open=True)


async def translate(exchange: Exchange) -> Response:
    fields = await exchange.fields()
    async with exchange.open_call("Translate", token=token_of(fields)) as call:
        texts = fields.strings("q")
        if not texts or texts == [""]:
            raise refusal("q", "is required")
        num_alternatives = fields.integer("alternatives", 0)
        maximum = exchange.core.limits.max_beam_size - 1
        if not 0 <= num_alternatives <= maximum:
            raise refusal("alternatives", f"is {num_alternatives}; it must be from 0 to {maximum}")
        template = pb.TranslateRequest(
            source_language=source_of(fields),
            target_language=fields.required_string("target"),
            text_format=_format_of(fields),
            options=_options(num_alternatives, maximum + 1),
        )
        answers = await translate_texts(exchange.core, call, texts, template, field="q")
    return JSONResponse(_written(answers, fields, num_alternatives))


async def detect(exchange: Exchange) -> Response:
    """POST /detect: those of our languages, most likely first, unless it is in none of them."""
    fields = await exchange.fields()
    async with exchange.open_call("DetectLanguage", token=token_of(fields)) as call:
        text = fields.required_string("q")
        response = await exchange.core.detect_language(pb.DetectLanguageRequest(texts=[text]), call)
    detected = response.texts[0]
    served = [candidate for candidate in detected.candidates if candidate.served] if detected.language else []
    return JSONResponse([_guess(candidate.language, candidate.confidence) for candidate in served])


def health(is_ready: Callable[[], bool]) -> Handle:

    async def handle(exchange: Exchange) -> Response:
        return JSONResponse({"status": "ok"}) if is_ready() else JSONResponse({"status": "error"}, 503)

    return handle


async def languages(exchange: Exchange) -> Response:
    pairs = targets_by_source(exchange.core)
    codes = all_languages(exchange.core.models)
    return JSONResponse(
        [{"code": code, "name": language_name(code), "targets": pairs.get(code, [])} for code in codes]
    )


async def settings(exchange: Exchange) -> Response:
    core = exchange.core
    pairs = targets_by_source(core)
    source = next(iter(pairs), "")
    target = pairs[source][0] if source else ""
    return JSONResponse(
        {
            "apiKeys": core.callers.are_asked,
            "charLimit": core.limits.max_text_characters,
            "filesTranslation": True,
            "frontendTimeout": FRONTEND_TIMEOUT_MILLISECONDS,
            "keyRequired": core.callers.are_asked,
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": suffixes(),
        }
    )


def token_of(fields: Fields) -> str | None:
    """The key of a body, as LibreTranslate's clients send it."""
    return fields.string("api_key") or None


def source_of(fields: Fields) -> str:
    """The language that is named; "" where it is to be detected."""
    source = fields.required_string("source")
    return "" if source == "auto" else source


def _format_of(fields: Fields) -> pb.TextFormat:
    name = fields.string("format") or "text"
    if name not in FORMATS:
        raise refusal("format", f"is {name[:80]!r}; it must be text or html")
    return FORMATS[name]


def _options(num_alternatives: int, max_beam_size: int) -> pb.DecodingOptions | None:
    if not num_alternatives:
        return None
    number = num_alternatives + 1
    return pb.DecodingOptions(num_hypotheses=number, beam_size=min(max(number, 5), max_beam_size))


def _guess(language: str, confidence: float) -> dict[str, object]:
    return {"confidence": round(100 * confidence, 1), "language": language}


def _written(answers: list[Answer], fields: Fields, num_alternatives: int) -> dict[str, object]:
    texts: list[object] = [answer.text for answer in answers]
    others: list[object] = [answer.alternatives for answer in answers]
    detected: list[object] = [_guess(answer.source_language, answer.confidence) for answer in answers]
    is_list = isinstance(fields.values.get("q"), list)
    written: dict[str, object] = {"translatedText": texts if is_list else texts[0]}
    if num_alternatives:
        written["alternatives"] = others if is_list else others[0]
    if fields.values.get("source") == "auto":
        written["detectedLanguage"] = detected if is_list else detected[0]
    return written
