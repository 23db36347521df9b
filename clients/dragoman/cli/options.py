"""The options that the subcommands of a client share, and the client that they ask for."""

import math
import os
from collections.abc import Callable
from dataclasses import fields
from functools import partial, wraps
from typing import Any, TypedDict

import click

from dragoman.client import Client
from dragoman.connection.channel import PING_SECONDS, ClientCertificate
from dragoman.errors import InvalidRequestError
from dragoman.settings import Settings

Command = Callable[..., None]

_NAMES = {field.name for field in fields(Settings)}

TOKEN_VARIABLE = "DRAGOMAN_TOKEN"
"""The environment variable with the caller's token. No option: other users of a machine see its command
lines."""
CERTIFICATE_VARIABLE, KEY_VARIABLE = "DRAGOMAN_CLIENT_CERTIFICATE", "DRAGOMAN_CLIENT_KEY"
"""PEM files of the caller's certificate and key, for a server that asks for one."""

OPTIONS = {name: "--" + name.replace("_", "-") for name in _NAMES} | {
    "source": "--from",
    "target": "--to",
    "beam_size": "--beam",
    "num_hypotheses": "--n-best",
    "target_prefix": "--prefix",
    "length_policy": "--long-sentences",
    "text_format": "--html",
    "glossaries": "--glossary",
    "terms": "--term",
    "forbidden": "--forbid",
    "do_not_translate": "--keep",
    "patterns": "--keep-pattern",
    "protected_ranges": "--keep-range",
    "timeout_seconds": "--timeout",
}
"""Which option sets a field of a request, by its name without what stands before or behind it."""


class ConnectionArguments(TypedDict):
    """How a client shows who calls."""

    certificate: ClientCertificate | None
    token: str | None


class Seconds(click.FloatRange):
    """A number of seconds; nan, which every range takes, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail("nan is not a number of seconds.", param, ctx)
        return seconds


server_option = click.option(
    "--server",
    metavar="HOST:PORT[,...]",
    default="localhost:50051",
    envvar="DRAGOMAN_SERVER",
    show_default=True,
    show_envvar=True,
    help="Where the server listens; grpcs://HOST:PORT over TLS. Of several servers, all with commas between, "
    "or dns:///NAME:PORT of a name that stands for them. One that asks who calls is shown "
    f"{TOKEN_VARIABLE} of the environment.",
)


def open_client(
    server: str, *, timeout_seconds: float | None = 600.0, ping_seconds: float | None = PING_SECONDS
) -> Client:
    """A client of `--server` with the environment's token and certificate. Raises InvalidRequestError."""
    return Client(
        server, timeout_seconds=timeout_seconds, ping_seconds=ping_seconds, **connection_arguments()
    )


def connection_arguments() -> ConnectionArguments:
    """The environment's token and certificate, as clients take them. Raises InvalidRequestError."""
    chain, key = os.environ.get(CERTIFICATE_VARIABLE), os.environ.get(KEY_VARIABLE)
    if bool(chain) != bool(key):
        raise InvalidRequestError(
            f"{CERTIFICATE_VARIABLE} and {KEY_VARIABLE} are set together, or neither is"
        )
    certificate = (chain, key) if chain and key else None
    return {"certificate": certificate, "token": os.environ.get(TOKEN_VARIABLE) or None}


def timeout_option(help_text: str) -> Callable[[Command], Command]:
    """The time that a call may take."""
    return click.option(
        "--timeout",
        "timeout_seconds",
        type=Seconds(min=0, min_open=True),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help=help_text,
    )


def _read_terms(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    terms = {}
    for written in given:
        word, mark, translation = written.partition("=")
        if not (mark and word.strip() and translation.strip()):
            raise click.BadParameter(f"{written!r} is not WORD=TRANSLATION", context, parameter)
        if word in terms:
            raise click.BadParameter(f"{word!r} is given twice", context, parameter)
        terms[word] = translation
    return terms


several = partial(click.option, multiple=True)
"""An option that can be given several times."""


def settings_options(command: Command) -> Command:
    """Adds the options that say how to translate, and passes them on as `settings`.

    An option of the command's own that is named after a field of Settings is in there, too.
    """

    @click.option(
        "--from",
        "source",
        required=True,
        metavar="LANG",
        help='Language of the text, such as "de"; auto: the server detects it.',
    )
    @click.option(
        "--to", "target", required=True, metavar="LANG", help='Language to translate to, such as "en".'
    )
    @click.option(
        "--pivot",
        metavar="LANG",
        help='Language to go through where no model is direct, such as "en" from "de" to "fr"; "" for none. '
        "Default: the server's.",
    )
    @click.option("--model", metavar="NAME[/VERSION]", help="Model to use. Default: the server chooses.")
    @click.option(
        "--beam",
        "beam_size",
        type=int,
        help="Hypotheses kept while searching; 1 is greedy. Default: the model's.",
    )
    @click.option(
        "--length-penalty",
        type=float,
        help="Exponent of the length penalty, from 0 to 10; 0 turns it off. Default: the model's.",
    )
    @click.option(
        "--max-output-tokens",
        type=int,
        help="Most tokens a sentence's translation may have. Default: the model's, by the sentence's length.",
    )
    @click.option(
        "--long-sentences",
        "length_policy",
        type=click.Choice(["split", "reject", "truncate"]),
        help="What happens to a sentence that is too long for the model. Default: split.",
    )
    @click.option(
        "--formality",
        type=click.Choice(["formal", "informal"]),
        help="How a reader is addressed, by a model that was trained for it. Default: as the model finds it.",
    )
    @click.option(
        "--segmentation",
        type=click.Choice(["sentence", "line"]),
        help="What the model translates at once: a sentence, found by the rules of the language, or a line. "
        "Default: sentence.",
    )
    @click.option(
        "--priority",
        type=click.Choice(["interactive", "bulk"]),
        help="Who goes first where the server is full. Default: interactive; of a file or of lines, bulk.",
    )
    @click.option(
        "--html", "text_format", flag_value="html", help="The text is HTML, or has tags as XLIFF has."
    )
    @click.option(
        "--protect/--no-protect",
        default=None,
        help="Whether URLs, placeholders, numbers and the like come out as they are. Default: they do.",
    )
    @several("--keep", "do_not_translate", metavar="WORD", help="A word that stays as it is. Repeatable.")
    @several(
        "--keep-pattern",
        "patterns",
        metavar="REGEX",
        help="What matches stays as it is; the syntax is RE2's. Repeatable.",
    )
    @several(
        "--term",
        "terms",
        metavar="WORD=TRANSLATION",
        callback=_read_terms,
        help="What a word is translated by, always. Repeatable.",
    )
    @several(
        "--glossary",
        "glossaries",
        metavar="NAME",
        help="A glossary of the server whose terms are used. Repeatable.",
    )
    @click.option(
        "--inflected-terms",
        is_flag=True,
        default=None,
        help="Terms, glossaries' too, and forbidden words are found in all their inflected forms.",
    )
    @click.option(
        "--terms-as-written",
        is_flag=True,
        default=None,
        help="Translations of terms get no capitals from where they stand.",
    )
    @several(
        "--forbid",
        "forbidden",
        metavar="WORD",
        help="A word that a translation is warned of for. Repeatable.",
    )
    @wraps(command)
    def with_settings(**given: Any) -> None:
        # What is repeatable and not given is empty.
        asked = ((name, given.pop(name)) for name in _NAMES & given.keys())
        options: dict[str, Any] = {name: None if value in ((), {}) else value for name, value in asked}
        command(settings=Settings(**options), **given)

    return with_settings
