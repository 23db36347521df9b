"""`dragoman train`: wiring of recipe, corpus, vocabulary and trainer."""

from pathlib import Path

import click


@click.command()
@click.argument(
    "recipe_path", metavar="RECIPE.toml", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override a recipe's value, such as training.seed=2. May be given many times.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for checkpoints and TensorBoard. Default: runs/NAME.",
)
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="cpu, cuda, cuda:1, …; auto takes a GPU where there is one.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on from the folder's last checkpoint, to the same numbers an uninterrupted run gives.",
)
def train(recipe_path: Path, overrides: tuple[str, ...], out: Path | None, device: str, resume: bool) -> None:
    """Train a model by a recipe.

    Writes best.safetensors, the model to export, and last.safetensors, the state to resume from. Ctrl-C saves
    and stops.

    \b
    Examples:
      dragoman train training/recipes/multi30k-luong.toml
      dragoman train training/recipes/multi30k-luong.toml --set training.max_epochs=3 --set name=short
      dragoman train training/recipes/multi30k-luong.toml --resume
    """
    import torch

    from dragoman_training.checkpoint import read_checkpoint, stored_tokenizers
    from dragoman_training.corpus import read_corpus
    from dragoman_training.recipe import load_recipe
    from dragoman_training.reporter import Reporter
    from dragoman_training.trainer import DivergedError, Trainer
    from dragoman_training.vocabulary import train_tokenizers

    try:
        recipe = load_recipe(recipe_path, overrides)
        folder = out or Path("runs") / recipe.name
        last = folder / "last.safetensors"
        if last.exists() and not resume:
            raise ValueError(f"{last} exists: go on with --resume, or choose another folder with --out")
        if resume and not last.exists():
            raise ValueError(f"there is nothing to resume: {last} does not exist")
        if recipe.training.threads:
            torch.set_num_threads(recipe.training.threads)
        train_pairs = read_corpus(recipe.data, "train", recipe_path.parent)
        valid_pairs = read_corpus(recipe.data, "valid", recipe_path.parent)
        saved = read_checkpoint(last) if resume else None
        if saved and saved[1].model != recipe.model:
            raise ValueError(f"{last} holds another model than the recipe describes")
        tokenizers = (
            stored_tokenizers(saved[0]) if saved else train_tokenizers(train_pairs, recipe.vocabulary)
        )
        with Reporter(folder) as reporter:
            trainer = Trainer(
                recipe,
                tokenizers,
                train_pairs,
                valid_pairs,
                folder=folder,
                device=_device(device),
                reporter=reporter,
            )
            if saved:
                trainer.restore(saved[0], saved[2])
            try:
                best = trainer.run()
            except KeyboardInterrupt:
                click.echo(f"\nStopped after step {trainer.progress.step}; go on with --resume.", err=True)
                raise SystemExit(130) from None
    except (ValueError, OSError, DivergedError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Best model, BLEU {trainer.progress.best_bleu:.2f}: {best}")


def _device(name: str) -> "torch.device":  # type: ignore[name-defined]  # noqa: F821
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"--device {name}: PyTorch finds no CUDA device here")
    return device
