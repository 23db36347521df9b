"""`dragoman align-texts`: which words of a given translation come from which words of a text."""

import json
from dataclasses import asdict, dataclass

import click
from rich.console import Console

from dragoman.cli.options import open_client, server_option, timeout_option
from dragoman.cli.pictures import ATTENTION, BELIEF, alignment_picture
from dragoman.cli.text_arguments import TextCommand
from dragoman.translation import Alignment


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
    "--server-aligner",
    metavar="NAME",
    help="A saved aligner of the server, which links the words in place of a model; no language is needed.",
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
    server_aligner: str | None,
    as_json: bool,
    timeout_seconds: float,
    text: str,
    translation: str,
) -> None:
    """Draw which words of a TRANSLATION, whoever made it, come from which words of a TEXT.

    A model of the server is made to say the translation, and what it looks at meanwhile are the links. An
    aligner that the server has saved, by `dragoman align train`, makes fewer errors.

    \b
      dragoman align-texts --from de --to en "Das ist mein Haus." "This is my house."
      dragoman align-texts --server-aligner de-en "Das ist mein Haus." "This is my house."
    """
    if server_aligner is None and (source is None or target is None):
        raise click.UsageError(
            "give --from and --to for a model of the server, or --server-aligner for an aligner of it"
        )
    with open_client(server, timeout_seconds=timeout_seconds) as client:
        (aligned,) = client.align(
            [(text, translation)], source=source, target=target, model=model, aligner=server_aligner
        )
    if as_json:
        click.echo(json.dumps({"source": text, "target": translation, **asdict(aligned)}, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    picture = alignment_picture(
        text,
        _Linked(translation, aligned.alignments),
        width=console.width,
        ascii_only=console.options.ascii_only,
        weights=ATTENTION if server_aligner is None else BELIEF,
    )
    console.print(picture)
