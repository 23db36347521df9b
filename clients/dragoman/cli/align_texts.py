"""`dragoman align-texts`: which words of a given translation come from which words of a text."""

import json
from dataclasses import asdict, dataclass

import click
from rich.console import Console

from dragoman.cli.alignment_picture import alignment_picture
from dragoman.cli.options import open_client, server_option, timeout_option
from dragoman.cli.text_arguments import TextCommand
from dragoman.translation import Alignment


@dataclass(frozen=True)
class _Linked:
    text: str
    alignments: tuple[Alignment, ...]


@click.command(cls=TextCommand)
@server_option
@click.option("--from", "source", required=True, metavar="LANG", help='Language of the text, such as "de".')
@click.option("--to", "target", required=True, metavar="LANG", help="Language of the translation.")
@click.option("--model", metavar="NAME[/VERSION]", help="Model to use. Default: the server chooses.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object with every link.")
@timeout_option("Most time that it may take.")
@click.argument("text", metavar="TEXT")
@click.argument("translation", metavar="TRANSLATION")
def align_texts(
    *,
    server: str,
    source: str,
    target: str,
    model: str | None,
    as_json: bool,
    timeout_seconds: float,
    text: str,
    translation: str,
) -> None:
    """Draw which words of a TRANSLATION, whoever made it, come from which words of a TEXT.

    A model of the server is made to say the translation, and what it looks at meanwhile are the links. An
    aligner of one's own, by `dragoman align`, makes fewer errors.

    \b
      dragoman align-texts --from de --to en "Das ist mein Haus." "This is my house."
    """
    with open_client(server, timeout_seconds=timeout_seconds) as client:
        (aligned,) = client.align([(text, translation)], source=source, target=target, model=model)
    if as_json:
        shown = {"source": text, "target": translation, **asdict(aligned)}
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    linked = _Linked(translation, aligned.alignments)
    ascii_only = console.options.ascii_only
    console.print(alignment_picture(text, linked, width=console.width, ascii_only=ascii_only))
