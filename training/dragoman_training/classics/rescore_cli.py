"""`dragoman rescore`: translations chosen among a model's best ones by what other models say of them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman_training.time_left import progress_lines

if TYPE_CHECKING:
    from dragoman_training.classics.rescoring import Listed, Members

BLOCK_LINES = 200
_existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"show_default": True})
@click.argument("checkpoint", metavar="CHECKPOINT", type=_existing_file)
@click.option("--reverse", type=_existing_file, help="Checkpoint of a model that translates back: P(f|e).")
@click.option("--language-model", type=_existing_file, help="Checkpoint of family lm: P(e).")
@click.option("--valid-source", type=_existing_file, help="Text that the weights are tuned on.")
@click.option("--valid-target", type=_existing_file, help="Its translation.")
@click.option(
    "--weights",
    help="In place of tuning: what an earlier run reported, such as "
    "direct=0.6,reverse=0.2,language_model=0.1,tokens=0.1.",
)
@click.option("--source", type=_existing_file, required=True, help="Text to translate, a sentence a line.")
@click.option("--reference", type=_existing_file, help="Its translation: the gain in BLEU is reported.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="The translations.  [default: stdout]"
)
@click.option(
    "--num-best",
    type=click.IntRange(2, 200),
    default=10,
    help="Translations a sentence: the width of the beam.",
)
@click.option("--length-penalty", type=click.FloatRange(0, 10), help="Of the beam.  [default: the model's]")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where it runs.")
@click.option("--seed", type=int, default=1, help="Of the tuning's random directions.")
def rescore(
    checkpoint: Path,
    reverse: Path | None,
    language_model: Path | None,
    valid_source: Path | None,
    valid_target: Path | None,
    weights: str | None,
    source: Path,
    reference: Path | None,
    output: Path | None,
    num_best: int,
    length_penalty: float | None,
    device: str,
    seed: int,
) -> None:
    """Translate a file, and choose among the best translations by a noisy channel (Yee et al. 2019).

    A translation e of f is the one with the largest weighted sum of log P(e|f), which is CHECKPOINT's,
    log P(f|e), log P(e), and its number of tokens. The weights are tuned for BLEU on other text. With
    --reference, BLEU before and after is reported, and the gain with its interval over 1,000 paired samples
    of sentences.

    \b
      dragoman rescore runs/de-en/best.safetensors --reverse runs/en-de/best.safetensors \\
          --language-model runs/lm-en/best.safetensors --valid-source val.de --valid-target val.en \\
          --source test.de --reference test.en --output test.rescored
    """
    import numpy as np

    from dragoman_training.classics.rescoring import FEATURES, Members, choose, tune_weights
    from dragoman_training.classics.smt.decoder import parse_weights
    from dragoman_training.data.files import read_lines, read_pairs
    from dragoman_training.device import choose_device

    if (valid_source is None) != (valid_target is None):
        raise click.UsageError("--valid-source and --valid-target belong together")
    if (valid_source is None) == (weights is None):
        raise click.UsageError("give --valid-source and --valid-target to tune the weights, or --weights")
    given = None if weights is None else np.array([*parse_weights(weights, FEATURES).values()])
    references: list[str] | None = None
    if reference is None:
        sources = list(read_lines(source))
    else:
        pairs = list(read_pairs(source, reference))
        sources, references = [one for one, _ in pairs], [other for _, other in pairs]
    if not sources:
        raise ValueError(f"{source} is empty: there is nothing to translate")
    if output is not None and not output.absolute().parent.is_dir():
        raise click.UsageError(f"--output: there is no folder {output.parent}")
    members = Members.load(checkpoint, reverse, language_model, choose_device(device))
    if valid_source is not None and valid_target is not None:
        valid = list(read_pairs(valid_source, valid_target))
        if not valid:
            raise ValueError(f"{valid_source} is empty: there is nothing to tune the weights on")
        lists = _list(members, [one for one, _ in valid], num_best, length_penalty, valid_source)
        given = tune_weights(lists, [other for _, other in valid], seed=seed)
    assert given is not None
    weighed = ",".join(f"{name}={weight:.4g}" for name, weight in zip(FEATURES, given, strict=True))
    click.echo(f"weights {weighed}", err=True)
    lists = _list(members, sources, num_best, length_penalty, source)
    chosen = [line.replace("\n", " ") for line in choose(lists, given)]
    if references is not None:
        _report_gain([own[0].text for own in lists], chosen, references)
    text = "".join(f"{line}\n" for line in chosen)
    if output is not None:
        output.write_text(text, "utf-8")
    else:
        click.echo(text, nl=False)


def _list(
    members: "Members", sources: list[str], num_best: int, length_penalty: float | None, path: Path
) -> "list[list[Listed]]":
    """The best translations of all lines, made in blocks."""
    report = progress_lines(len(sources), f"{path.name}: translated", "lines", partial(click.echo, err=True))
    lists: list[list[Listed]] = []
    for start in range(0, len(sources), BLOCK_LINES):
        lists += members.translations(sources[start : start + BLOCK_LINES], num_best, length_penalty)
        report(len(lists))
    return lists


def _report_gain(before: list[str], after: list[str], references: list[str]) -> None:
    from sacrebleu.metrics.bleu import BLEU

    from dragoman_training.classics.smt.tuning import bootstrap

    scores = [BLEU().corpus_score(lines, [references]).score for lines in (before, after)]
    low, _, high = bootstrap([before, after], references)[1]
    click.echo(
        f"BLEU {scores[0]:.2f}, rescored {scores[1]:.2f}: {scores[1] - scores[0]:+.2f} "
        f"(95%: {low:+.2f} to {high:+.2f})",
        err=True,
    )
