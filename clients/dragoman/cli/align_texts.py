"""`dragoman align-texts`: which words of a given translation come from which words of a text."""

import json
from dataclasses import asdict, dataclass

import click
from click.core import ParameterSource
from rich.console import Console

from dragoman.cli.options import open_client, server_option, timeout_option
from dragoman.cli.pictures import ATTENTION, BELIEF, alignment_picture
from dragoman.cli.system import align_by_folder
from dragoman.cli.text_arguments import TextCommand
from dragoman.translation import Alignment

_OF_SERVERS = ("server", "source", "target", "model", "server_aligner", "timeout_seconds")


@dataclass(frozen=True)
class _Linked:
    text: str
    alignments: tuple[Alignment, ...]


@click.command(cls=TextCommand)
@server_option
@click.option("--from", "source", metavar="LANG", help='Language of the text, such as "de".')
@click.option("--to", "target", metavar="LANG", help="Language of the translation.")
@click.option("--model", metavar="NAME[/VERSION]", help="Model to use. Default: the server chooses.")
@click.option(
    "--aligner",
    type=click.Path(exists=True, file_okay=False),
    help="A folder of `dragoman align train`, which links the words in place of a server.",
)
@click.option(
    "--server-aligner",
    metavar="NAME",
    help="A saved aligner of the server, which links the words in place of a model; no language is needed.",
)
@click.option(
    "--max-words",
    default=500,
    show_default=True,
    type=click.IntRange(min=1),
    help="Most words a side that --aligner links at once; twice as many take up to eight times as long.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with every link.")
@timeout_option("Most time that it may take.")
@click.argument("text", metavar="TEXT")
@click.argument("translation", metavar="TRANSLATION")
def align_texts(
    *,
    server: str,
    source: str | None,
    target: str | None,
    model: str | None,
    aligner: str | None,
    server_aligner: str | None,
    max_words: int,
    as_json: bool,
    timeout_seconds: float,
    text: str,
    translation: str,
) -> None:
    """Draw which words of a TRANSLATION, whoever made it, come from which words of a TEXT.

    A model of the server is made to say the translation, and what it looks at meanwhile are the links. A
    saved aligner, by `dragoman align train`, makes fewer errors: one of the server by its name, or one of
    your own from its folder, which needs no server.

    \b
      dragoman align-texts --from de --to en "Das ist mein Haus." "This is my house."
      dragoman align-texts --server-aligner de-en "Das ist mein Haus." "This is my house."
      dragoman align-texts --aligner runs/align-de-en "Das ist mein Haus." "This is my house."
    """
    if aligner is not None:
        _refuse_options_of_servers(click.get_current_context())
        alignments = align_by_folder(aligner, text, translation, max_words=max_words)
        answer: dict[str, object] = {"alignments": [asdict(link) for link in alignments]}
    elif server_aligner is None and (source is None or target is None):
        raise click.UsageError(
            "give --from and --to for a model of the server, --server-aligner for an aligner of it, or "
            "--aligner for a folder"
        )
    else:
        with open_client(server, timeout_seconds=timeout_seconds) as client:
            (aligned,) = client.align(
                [(text, translation)], source=source, target=target, model=model, aligner=server_aligner
            )
        alignments, answer = aligned.alignments, asdict(aligned)
    if as_json:
        click.echo(json.dumps({"source": text, "target": translation, **answer}, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    picture = alignment_picture(
        text,
        _Linked(translation, alignments),
        width=console.width,
        ascii_only=console.options.ascii_only,
        weights=ATTENTION if aligner is None and server_aligner is None else BELIEF,
    )
    console.print(picture)


def _refuse_options_of_servers(context: click.Context) -> None:
    """Raises UsageError where one is given: together with an aligner it would do nothing."""
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if is_given and parameter.name in _OF_SERVERS:
            raise click.UsageError(f"{parameter.opts[0]} is of a server, and --aligner asks none")
