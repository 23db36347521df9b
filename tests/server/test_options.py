"""Each option of `dragoman serve` reaches the field that it is named after."""

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import click
import pytest
from click.testing import CliRunner

import dragoman_server.server
from dragoman_server.cli import serve
from dragoman_server.config import EngineConfig, RequestLimits, ServerConfig
from dragoman_server.logs import Log

TEXTS = {
    "host": "127.0.0.9",
    "metrics_host": "127.0.0.8",
    "models": "bundles",
    "tls_certificate": "a.pem",
    "tls_key": "b.pem",
    "tokens": "names",
    "caller_limits": "limits",
    "tls_client_ca": "ca.pem",
    "http_cors_origins": "https://example.org",
    "http_trusted_proxies": "10.0.0.0/8",
    "otlp_endpoint": "http://localhost:4317",
    "device": "cuda",
    "precision": "fp32",
    "batching": "request",
    "log_format": "text",
    "max_bulk_share": "0.5",
}


def leaves(config: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(config):  # type: ignore[arg-type]
        value = getattr(config, field.name)
        found |= leaves(value) if is_dataclass(value) else {field.name: value}
    return found


def test_every_option_reaches_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a value of its own, and none its default, so that no two can be exchanged."""
    given: list[ServerConfig] = []

    async def take(config: ServerConfig, log: Log) -> bool:
        given.append(config)
        return True

    monkeypatch.setattr(dragoman_server.server, "serve", take)
    options = [each for each in serve.params if isinstance(each, click.Option) and each.name is not None]
    expected: dict[str, str] = {}
    arguments = []
    for number, option in enumerate(options, start=31):
        field = option.name
        if option.is_flag:
            arguments.append(option.secondary_opts[0])
            expected[field] = "False"
        else:
            # Those that are compared with others grow with them.
            expected[field] = TEXTS.get(option.name, str(number * (100 if field == "max_rows" else 1)))
            arguments += [option.opts[0], expected[field]]
    result = CliRunner().invoke(serve, arguments)
    assert result.exit_code == 0, result.output
    found = leaves(given[0])
    assert set(found) == set(expected)
    for field, value in expected.items():
        [given_value] = found[field] if isinstance(found[field], tuple) else [found[field]]
        assert str(given_value).removesuffix(".0") == value, field
    for type_ in (ServerConfig, RequestLimits, EngineConfig):
        for field in fields(type_):
            assert field.default is MISSING or found[field.name] != field.default, field.name
