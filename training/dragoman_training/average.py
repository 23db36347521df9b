"""`dragoman average`: the mean of several checkpoints of one run (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Sequence
from pathlib import Path

import click


def average_checkpoints(paths: Sequence[Path], out: Path) -> None:
    """Writes a checkpoint whose parameters are the mean of the others'.

    Its progress is the last step's, without the validations, which measured other models. Of a checkpoint
    with a moving average that average is taken. Raises CheckpointError where two checkpoints differ in their
    model or vocabulary, or are of different runs or of one step, and where one is an average already.
    """
    import torch

    from dragoman_training.checkpoint import CheckpointError, load_checkpoint, write_checkpoint
    from dragoman_training.run.resuming import fixed_differences

    first = latest = load_checkpoint(paths[0])
    paths_of: dict[int, Path] = {}
    sums = {name: torch.zeros_like(own, dtype=torch.double) for name, own in first.model.named_parameters()}
    for path in paths:
        other = load_checkpoint(path) if paths_of else first
        if other.progress.get("averaged"):
            raise CheckpointError(f"{path} is an average already: average the checkpoints that it is made of")
        if other.recipe.model != first.recipe.model:
            models = f"{other.recipe.model}, not {first.recipe.model}"
            raise CheckpointError(f"{path} is of another model than {paths[0]}: {models}")
        if not other.has_vocabulary_of(first):
            others = f"{path} has another vocabulary than {paths[0]}"
            raise CheckpointError(f"{others}: average checkpoints of one run")
        for name_of, ours, theirs in (
            *fixed_differences(first.recipe, other.recipe),
            ("training pairs", first.progress.get("corpus"), other.progress.get("corpus")),
        ):
            if theirs != ours:
                raise CheckpointError(
                    f"{path} is of another run than {paths[0]}, by its {name_of}: {theirs!r}, not {ours!r}. "
                    "The mean of different runs translates nothing; they decode together as an ensemble, "
                    "with `dragoman evaluate --checkpoint A --checkpoint B` or `dragoman export A B`"
                )
        step = other.progress["step"]
        if step in paths_of:
            raise CheckpointError(
                f"{path} is of step {step}, as {paths_of[step]} is: it would count twice. Name the "
                "checkpoints of the last validations alone, step-*.safetensors"
            )
        paths_of[step] = path
        for name, value in other.model.named_parameters():
            sums[name] += value.detach()
        if step > latest.progress["step"]:
            latest = other
    unvalidated = {"validations": [], "best_bleu": -1.0, "best_perplexity": None, "best_step": None}
    tokenizers = latest.source_tokenizer, latest.target_tokenizer
    tensors = {f"model.{name}": (total / len(paths)).float() for name, total in sums.items()}
    progress = {**latest.progress, **unvalidated, "averaged": sorted(paths_of)}
    write_checkpoint(out, latest.recipe, tokenizers, tensors, progress)


@click.command()
@click.argument(
    "checkpoints",
    metavar="CKPT...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The checkpoint to write; it must not exist.",
)
def average(checkpoints: tuple[Path, ...], out: Path) -> None:
    """Average the parameters of checkpoints of one run.

    A recipe with training.keep_validated keeps the models of its last validations for this.

    \b
    Example:
      dragoman average runs/small/step-*.safetensors --out runs/small/average.safetensors
    """
    if out.exists():
        raise ValueError(f"{out} exists: choose another file with --out, or remove it")
    average_checkpoints(checkpoints, out)
    click.echo(f"The mean of {len(checkpoints)} checkpoints is in {out}.")
