"""DeepL's API, version 2, for what is here. What is not is refused by name, never passed over in silence."""

from collections.abc import Mapping

from starlette.responses import JSONResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import (
    CallerLimitError,
    GlossaryNotFoundError,
    InvalidRequestError,
    ModelNotFoundError,
    UnsupportedError,
    Violation,
)
from dragoman_server.quoting import list_names, quote
from dragoman_server.service.statuses import status_of
from dragoman_server.web.apis.languages import language_name, targets_by_source
from dragoman_server.web.apis.translating import translate_texts
from dragoman_server.web.endpoint import Api
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import Fields, refusal
from dragoman_server.web.statuses import http_status, message_of, retry_headers

MAX_TEXTS = 50
"""Most texts of a request, as DeepL has it."""
UNLIMITED_CHARACTERS = 1_000_000_000_000
"""The limit that DeepL states for callers without one."""

_FORBIDDEN, _BAD_REQUEST, _QUOTA_EXCEEDED = 403, 400, 456
# DeepL's clients refuse a bare "EN" or "PT" as a target, and its list has none.
_REGIONS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT")}
# What says nothing more than that nothing is wanted.
_WITHOUT_EFFECT: Mapping[str, frozenset[str]] = {
    "context": frozenset({""}),
    "formality": frozenset({"", "default", "prefer_less", "prefer_more"}),
    "model_type": frozenset({"", "prefer_quality_optimized", "latency_optimized"}),
    "preserve_formatting": frozenset({"0", "false"}),
    "outline_detection": frozenset({"1", "true"}),
    "show_billed_characters": frozenset({"0", "1", "false", "true"}),
    "enable_beta_languages": frozenset({"0", "false"}),
}
_KNOWN = frozenset(
    {
        "auth_key",
        "glossary_id",
        "glossary_ids",
        "source_lang",
        "split_sentences",
        "tag_handling",
        "target_lang",
        "text",
    }
)


def write_error(error: Exception) -> Response:
    """An error as DeepL's clients read it."""
    status = http_status(error)
    if status == 401:
        status = _FORBIDDEN
    elif isinstance(error, ModelNotFoundError | UnsupportedError):
        status = _BAD_REQUEST
    elif isinstance(error, CallerLimitError) and error.limit == "characters-per-day":
        # Its clients come again at once for 429, and don't for this.
        status = _QUOTA_EXCEEDED
    return JSONResponse({"message": message_of(error)}, status, headers=retry_headers(status_of(error)))


API = Api(name="deepl", write_error=write_error, takes_token_in_body=True)


async def translate(exchange: Exchange) -> Response:
    """POST /v2/translate."""
    fields = await exchange.fields()
    async with exchange.open_call("Translate", token=fields.string("auth_key")) as call:
        texts = _texts_of(fields)
        _refuse_others(fields)
        template = pb.TranslateRequest(
            source_language=(fields.string("source_lang") or "").lower(),
            target_language=fields.required_string("target_lang").lower(),
        )
        tags = fields.string("tag_handling") or ""
        if tags not in ("", "html", "xml"):
            raise refusal("tag_handling", f"is {quote(tags)}; it must be html or xml")
        if tags:
            template.text_format = pb.TEXT_FORMAT_HTML
        _read_split(fields, texts, template, has_tags=bool(tags))
        _read_glossaries(fields, exchange, template)
        answers = await translate_texts(exchange.core, call, texts, template, field="text")
    return JSONResponse(
        {
            "translations": [
                {
                    "detected_source_language": answer.source_language.upper(),
                    "text": answer.text,
                    "billed_characters": answer.num_characters,
                }
                for answer in answers
            ]
        }
    )


async def languages(exchange: Exchange) -> Response:
    """GET /v2/languages, of sources or of targets."""
    fields = await exchange.fields()
    async with exchange.open_call("ListModels", token=fields.string("auth_key")):
        kind = fields.string("type") or "source"
        if kind not in ("source", "target"):
            raise refusal("type", f"is {quote(kind)}; it must be source or target")
        pairs = targets_by_source(exchange.core)
    if kind == "source":
        return JSONResponse([_language(code.upper()) for code in pairs])
    targets = sorted({target for targets in pairs.values() for target in targets})
    codes = [code for target in targets for code in _REGIONS.get(target.lower(), (target.upper(),))]
    return JSONResponse([{**_language(code), "supports_formality": False} for code in codes])


async def usage(exchange: Exchange) -> Response:
    """GET /v2/usage: what this caller has had translated today, over either door."""
    fields = await exchange.fields()
    async with exchange.open_call("Usage", token=fields.string("auth_key")) as call:
        number, most = call.allowance.characters_today, call.allowance.limits.characters_per_day
    return JSONResponse({"character_count": number, "character_limit": most or UNLIMITED_CHARACTERS})


async def unsupported(exchange: Exchange) -> Response:
    """All else below /v2."""
    path = exchange.request.url.path
    return JSONResponse(
        {
            "message": f"{quote(path)} is not supported by this server, which has /v2/translate, "
            "/v2/languages and /v2/usage"
        },
        404,
    )


def _texts_of(fields: Fields) -> list[str]:
    texts = fields.strings("text")
    if not texts:
        raise refusal("text", "is required")
    if len(texts) > MAX_TEXTS:
        raise refusal("text", f"holds {len(texts)} texts, and a request takes {MAX_TEXTS}; send several")
    return texts


def _refuse_others(fields: Fields) -> None:
    violations = []
    for name, value in fields.values.items():
        if name in _KNOWN or value is None:
            continue
        harmless = _WITHOUT_EFFECT.get(name, frozenset())
        if str(value).lower() not in harmless:
            words = sorted(word for word in harmless if word)
            known = f"; it may be {list_names(words)}" if words else ""
            violations.append(Violation(field=name, description=f"is not supported by this server{known}"))
    if violations:
        raise InvalidRequestError(violations)


def _read_split(fields: Fields, texts: list[str], template: pb.TranslateRequest, *, has_tags: bool) -> None:
    """DeepL: 0 for not at all, 1 at sentence ends and line breaks, "nonewlines" at sentence ends alone."""
    split = fields.string("split_sentences")
    if split is None or (split == "nonewlines" and has_tags):
        return
    if split == "1" and not has_tags:
        return
    if split not in ("0", "1", "nonewlines"):
        raise refusal("split_sentences", f"is {quote(split)}; it must be 0, 1 or nonewlines")
    if split == "1":
        raise refusal("split_sentences", "is 1, and with tag_handling line breaks are spaces; leave it out")
    if split == "nonewlines" or any("\n" in text.strip() for text in texts):
        raise refusal(
            "split_sentences",
            f"is {split}, and a line break always ends a sentence here; join the lines, or leave it out",
        )
    template.segmentation = pb.SEGMENTATION_LINE


def _read_glossaries(fields: Fields, exchange: Exchange, template: pb.TranslateRequest) -> None:
    names = [name for name in (fields.strings("glossary_id") or []) if name]
    names += [name for name in (fields.strings("glossary_ids") or []) if name]
    if not names:
        return
    if not template.source_language:
        raise refusal("source_lang", "is required with a glossary")
    listed = exchange.core.list_glossaries(pb.ListGlossariesRequest()).glossaries
    known = [glossary.name for glossary in listed]
    for name in names:
        if name not in known:
            ids = list_names(known) if known else "none"
            raise GlossaryNotFoundError(f"there is no glossary {quote(name)}; the server has {ids}")
    template.protection.glossaries.extend(names)


def _language(code: str) -> dict[str, object]:
    language, _, region = code.partition("-")
    name = language_name(language.lower())
    return {"language": code, "name": f"{name} ({region})" if region else name}
