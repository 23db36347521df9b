"""DeepL's API, version 2, for what is here.

What only advises is taken and left; what would change the meaning and is not here is refused by name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations

from starlette.responses import JSONResponse, PlainTextResponse, Response

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import (
    CallerLimitError,
    GlossaryNotFoundError,
    ModelNotFoundError,
    UnsupportedError,
    Violation,
    list_names,
    quote,
    raise_if_any,
    refusal,
)
from dragoman_server.glossaries import Glossary
from dragoman_server.web.apis.translating import (
    knows_formality,
    language_name,
    targets_by_source,
    translate_texts,
)
from dragoman_server.web.endpoint import Api, http_status
from dragoman_server.web.exchange import Exchange
from dragoman_server.web.fields import Fields

MAX_TEXTS = 50
"""Most texts of a request, as DeepL has it."""
UNLIMITED_CHARACTERS = 1_000_000_000_000
"""The limit that DeepL states for callers without one."""

_FORBIDDEN, _BAD_REQUEST, _QUOTA_EXCEEDED = 403, 400, 456
# DeepL's clients refuse a bare "EN" or "PT" as a target, and its list has none.
_REGIONS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-BR", "PT-PT")}
_FORMALITIES = {
    "less": pb.FORMALITY_INFORMAL,
    "more": pb.FORMALITY_FORMAL,
    "prefer_less": pb.FORMALITY_INFORMAL,
    "prefer_more": pb.FORMALITY_FORMAL,
}
# Of these any other value would change the translation.
_VALUES: Mapping[str, tuple[str, ...]] = {
    "formality": ("", "default", *_FORMALITIES),
    "split_sentences": ("", "0", "1", "nonewlines", "false", "true"),
    "tag_handling": ("", "html", "xml"),
    "tag_handling_version": ("", "v1", "v2"),
}
_KNOWN = {"auth_key", "glossary_id", "glossary_ids", "ignore_tags", "source_lang", "target_lang", "text"}
# Advice on how to come to a translation, none on what it is.
_ADVICE = {
    *("context", "enable_beta_languages", "model_type", "non_splitting_tags", "outline_detection"),
    *("preserve_formatting", "show_billed_characters", "splitting_tags"),
}


def _status(error: Exception) -> int:
    status = http_status(error)
    if status == 401:
        return _FORBIDDEN
    if isinstance(error, ModelNotFoundError | UnsupportedError):
        return _BAD_REQUEST
    # Its clients come again at once for 429, and don't for this.
    is_quota = isinstance(error, CallerLimitError) and error.limit == "characters-per-day"
    return _QUOTA_EXCEEDED if is_quota else status


API = Api(name="deepl", status=_status, error_field="message", takes_token_in_body=True)


async def translate(exchange: Exchange) -> Response:
    fields = await exchange.fields()
    async with exchange.open_call("Translate", token=fields.string("auth_key")) as call:
        texts = _texts_of(fields)
        _refuse_others(fields)
        template = pb.TranslateRequest(
            source_language=(fields.string("source_lang") or "").lower(),
            target_language=fields.required_string("target_lang").lower(),
        )
        has_tags = bool(fields.string("tag_handling"))
        if has_tags:
            template.text_format = pb.TEXT_FORMAT_HTML
            template.protection.untranslated_elements.extend(_names(fields, "ignore_tags"))
        _read_split(fields, texts, template, has_tags=has_tags)
        _read_glossaries(fields, exchange, template)
        _read_formality(fields, exchange, template)
        answers = await translate_texts(exchange.core, call, texts, template, field="text")
    translations = [
        {
            "detected_source_language": answer.source_language.upper(),
            "text": answer.text,
            "billed_characters": answer.num_characters,
        }
        for answer in answers
    ]
    return JSONResponse({"translations": translations})


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
    return JSONResponse(
        [{**_language(code), "supports_formality": knows_formality(exchange.core, code)} for code in codes]
    )


async def usage(exchange: Exchange) -> Response:
    """GET /v2/usage: what this caller has had translated today, over gRPC too."""
    fields = await exchange.fields()
    async with exchange.open_call("Usage", token=fields.string("auth_key")) as call:
        number, maximum = call.allowance.characters_today, call.allowance.limits.characters_per_day
    return JSONResponse({"character_count": number, "character_limit": maximum or UNLIMITED_CHARACTERS})


@dataclass(frozen=True, kw_only=True)
class _Dictionary:
    """A glossary of the server from one of its languages to another: a glossary as DeepL has them."""

    glossary: Glossary
    source: str
    target: str

    @property
    def id(self) -> str:
        return f"{self.glossary.name}:{self.source}:{self.target}"

    @property
    def entries(self) -> list[tuple[str, str]]:
        source, target = map(self.glossary.languages.index, (self.source, self.target))
        found = ((entry[source], entry[target]) for entry in self.glossary.entries)
        return [entry for entry in found if all(entry)]

    def described(self) -> dict[str, object]:
        return {
            "glossary_id": self.id,
            "name": self.glossary.name,
            "ready": True,
            "source_lang": self.source,
            "target_lang": self.target,
            "creation_time": datetime.fromtimestamp(self.glossary.changed_at, UTC).isoformat(),
            "entry_count": len(self.entries),
        }


async def glossaries(exchange: Exchange) -> Response:
    async with exchange.open_call("ListGlossaries"):
        return JSONResponse({"glossaries": [each.described() for each in _dictionaries(exchange)]})


async def glossary(exchange: Exchange) -> Response:
    async with exchange.open_call("ListGlossaries"):
        return JSONResponse(_dictionary(exchange).described())


async def glossary_entries(exchange: Exchange) -> Response:
    """GET /v2/glossaries/ID/entries: tab-separated values."""
    async with exchange.open_call("ListGlossaries"):
        lines = ["\t".join(entry) for entry in _dictionary(exchange).entries]
    return PlainTextResponse("\n".join(lines), media_type="text/tab-separated-values")


async def glossary_language_pairs(exchange: Exchange) -> Response:
    """GET /v2/glossary-language-pairs: those of the glossaries."""
    async with exchange.open_call("ListGlossaries"):
        pairs = sorted({(each.source, each.target) for each in _dictionaries(exchange)})
    supported = [{"source_lang": source, "target_lang": target} for source, target in pairs]
    return JSONResponse({"supported_languages": supported})


async def unsupported(exchange: Exchange) -> Response:
    """All else below /v2."""
    request = exchange.request
    message = (
        f"{request.method} {quote(request.url.path)} is not supported by this server, which has "
        "/v2/translate, /v2/languages, /v2/usage, and for reading /v2/glossaries and "
        "/v2/glossary-language-pairs: its glossaries are files of its own"
    )
    return JSONResponse({"message": message}, 404)


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
        if name in _KNOWN or name in _ADVICE or value is None:
            continue
        values = _VALUES.get(name, ())
        if str(value).lower() not in values:
            known = list_names([word for word in values if word])
            description = f"is {quote(str(value))}; here it may be {known}"
            if not known:
                description = "is not supported by this server; leave it out"
            violations.append(Violation(name, description))
    raise_if_any(violations)


def _read_formality(fields: Fields, exchange: Exchange, template: pb.TranslateRequest) -> None:
    """Sets it where a model knows it. Raises InvalidRequestError where none does that must."""
    value = (fields.string("formality") or "").lower()
    if value not in _FORMALITIES:
        return
    if knows_formality(exchange.core, template.target_language):
        template.options.formality = _FORMALITIES[value]
    elif not value.startswith("prefer_"):
        description = "and no model that is loaded was trained for it; leave it out, or prefer it"
        raise refusal("formality", f"is {value}, {description}")


def _read_split(fields: Fields, texts: list[str], template: pb.TranslateRequest, *, has_tags: bool) -> None:
    """DeepL: 0 for not at all, 1 at sentence ends and line breaks, "nonewlines" at sentence ends alone."""
    split = (fields.string("split_sentences") or "").lower()
    if split in ("0", "false"):
        template.segmentation = pb.SEGMENTATION_LINE
    elif split == "nonewlines" and not has_tags and any("\n" in text.strip() for text in texts):
        description = "is nonewlines, and a line break ends a sentence here; join the lines, or leave it out"
        raise refusal("split_sentences", description)


def _names(fields: Fields, name: str) -> list[str]:
    """A list, or one string with commas between."""
    given = fields.strings(name) or []
    return [part.strip() for value in given for part in value.split(",") if part.strip()]


def _read_glossaries(fields: Fields, exchange: Exchange, template: pb.TranslateRequest) -> None:
    ids = _names(fields, "glossary_id") + _names(fields, "glossary_ids")
    if not ids:
        return
    if not template.source_language:
        raise refusal("source_lang", "is required with a glossary")
    # As DeepL finds them.
    template.protection.inflected_terms = True
    for id_ in ids:
        name, _, _ = id_.partition(":")
        if name not in exchange.core.glossaries.by_name:
            raise _no_glossary(exchange, id_)
        # The languages of the id may be others: that the glossary has those of the text is seen later.
        template.protection.glossaries.append(name)


def _dictionaries(exchange: Exchange) -> Iterator[_Dictionary]:
    for glossary in exchange.core.glossaries.by_name.values():
        for source, target in permutations(glossary.languages, 2):
            yield _Dictionary(glossary=glossary, source=source, target=target)


def _dictionary(exchange: Exchange) -> _Dictionary:
    """The one that a path names: by its id, or by a glossary's name its first two languages."""
    id_ = exchange.request.path_params["id"]
    for each in _dictionaries(exchange):
        if id_ in (each.id, each.glossary.name):
            return each
    raise _no_glossary(exchange, id_)


def _no_glossary(exchange: Exchange, id_: str) -> GlossaryNotFoundError:
    known = list_names(list(exchange.core.glossaries.by_name)) or "none"
    return GlossaryNotFoundError(f"there is no glossary {quote(id_)}; the server has {known}")


def _language(code: str) -> dict[str, object]:
    language, _, region = code.partition("-")
    name = language_name(language.lower())
    return {"language": code, "name": f"{name} ({region})" if region else name}
