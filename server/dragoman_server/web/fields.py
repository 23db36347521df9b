"""The fields of a request, in JSON or as a form; a field of another kind is refused by name."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from dragoman_server.errors import InvalidRequestError, quote, refusal

MAX_JSON_VALUES = 100_000
"""Most strings, objects and lists of a JSON body, the names in objects included."""

# A string as a whole, also one without its end, or what begins an object or a list.
_JSON_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{\[]', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})
_MAX_FORM_FIELDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields of a request, by name. Each method raises InvalidRequestError."""

    values: Mapping[str, Any]
    """The values by name: as JSON has them; of a form a string, or a list where a field came several
    times."""
    files: Mapping[str, "UploadedFile"] = field(default_factory=dict)

    def string(self, name: str) -> str | None:
        """None where it is absent."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            # As forms and careless callers write numbers.
            return json.dumps(value)
        raise refusal(name, f"must be a string, and is {_kind(value)}")

    def required_string(self, name: str) -> str:
        """A string that is not empty."""
        value = self.string(name)
        if not value:
            raise refusal(name, "is required")
        return value

    def strings(self, name: str) -> list[str] | None:
        """A string is a list of one; None where it is absent."""
        value = self.values.get(name)
        if value is None:
            return None
        values = value if isinstance(value, list) else [value]
        for rank, item in enumerate(values):
            field = f"{name}[{rank}]" if isinstance(value, list) else name
            if not isinstance(item, str):
                raise refusal(field, f"must be a string, and is {_kind(item)}")
        return values

    def integer(self, name: str, default: int) -> int:
        """A number, or a string that is one."""
        value = self.values.get(name)
        if value is None or value == "":
            return default
        try:
            if isinstance(value, bool):
                raise ValueError
            return int(value)
        except (TypeError, ValueError, OverflowError):
            raise refusal(name, f"must be a whole number, and is {quote(str(value))}") from None

    def flag(self, name: str, default: bool) -> bool:
        """True or false, or what forms write for that."""
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        word = str(value).lower()
        if word not in _TRUE | _FALSE:
            raise refusal(name, f"must be true or false, and is {quote(str(value))}")
        return word in _TRUE


@dataclass(frozen=True, kw_only=True)
class UploadedFile:
    name: str
    content: bytes


def read_json(body: bytes) -> Any:
    """The value of a JSON body.

    Raises InvalidRequestError for broken JSON, for more values than MAX_JSON_VALUES, before any is made, and
    for a string that UTF-8 cannot carry.
    """
    for number, _ in enumerate(_JSON_VALUE.finditer(body), start=1):
        if number > MAX_JSON_VALUES:
            limit = f"{MAX_JSON_VALUES} strings, objects and lists"
            raise refusal("", f"the body has more than {limit}; send several requests")
    try:
        value = json.loads(body.decode("utf-8-sig"))
        if _SURROGATE.search(body):
            _check_surrogates("", value)
    except UnicodeDecodeError as error:
        raise not_in_utf8(error) from None
    except InvalidRequestError:
        raise
    except (ValueError, RecursionError) as error:
        raise refusal("", f"the body is no JSON: {error}") from None
    return value


def read_form(form: bytes) -> dict[str, Any]:
    """The fields of a body that is an HTML form, or of a query: UTF-8, as it is or behind %.

    Raises InvalidRequestError, also for more than 10,000 fields.
    """
    try:
        text, limit = form.decode(), _MAX_FORM_FIELDS
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=limit)
    except UnicodeDecodeError as error:
        raise not_in_utf8(error) from None
    except ValueError:
        raise refusal("", f"the form has more than {_MAX_FORM_FIELDS} fields; send JSON") from None
    return join_lists(pairs)


def join_lists(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The values of a form's fields; a list where a field came several times."""
    joined: dict[str, list[str]] = {}
    for name, value in pairs:
        joined.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in joined.items()}


def not_in_utf8(error: UnicodeDecodeError) -> InvalidRequestError:
    """The error of a request whose bytes are no text, with those around the place."""
    near = error.object[max(0, error.start - 10) : error.start + 10]
    return refusal("", f"the request is not in UTF-8: {error.reason} in {near!r}")


def _check_surrogates(name: str, value: object) -> None:
    """Raises InvalidRequestError for a string somewhere in the value that has a lone surrogate."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            description = f"has a lone surrogate at code point {error.start}, which UTF-8 cannot carry"
            raise refusal(name, description) from None
    elif isinstance(value, list):
        for rank, item in enumerate(value):
            _check_surrogates(f"{name}[{rank}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_surrogates(f"a name in {name}" if name else "a name", key)
            _check_surrogates(f"{name}.{key}" if name else key, item)


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
