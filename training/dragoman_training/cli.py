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
    help="Override a recipe's value, such as training.seed=2; paths are relative to the recipe. Repeatable.",
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
@click.option("--resume", is_flag=True, help="Go on from the folder's last checkpoint.")
def train(recipe_path: Path, overrides: tuple[str, ...], out: Path | None, device: str, resume: bool) -> None:
    """Train a model by a recipe.

    Writes best.safetensors, the model to export, and last.safetensors, the state to resume from. Ctrl-C and
    SIGTERM finish the step, save and stop; on a CPU a resumed run ends with the numbers of one that was never
    stopped.

    \b
    Examples:
      dragoman train training/recipes/multi30k-luong.toml
      dragoman train training/recipes/multi30k-luong.toml --set training.max_epochs=3 --set name=short
      dragoman train training/recipes/multi30k-luong.toml --resume
      tensorboard --logdir runs
    """
    import torch

    from dragoman_training.checkpoint import read_checkpoint, stored_tokenizers
    from dragoman_training.corpus import read_corpus
    from dragoman_training.device import choose_device
    from dragoman_training.recipe_reader import load_recipe
    from dragoman_training.reporter import Reporter
    from dragoman_training.stop_request import StopRequest
    from dragoman_training.trainer import Trainer, check_resumable
    from dragoman_training.vocabulary import train_tokenizers

    recipe = load_recipe(recipe_path, overrides)
    chosen = choose_device(device)
    folder = out or Path("runs") / recipe.name
    last = folder / "last.safetensors"
    if last.exists() and not resume:
        raise ValueError(f"{last} exists: go on with --resume, or choose another folder with --out")
    if resume and not last.exists():
        raise ValueError(f"there is nothing to resume: {last} does not exist")
    saved = read_checkpoint(last) if resume else None
    if saved:
        check_resumable(saved[1], recipe)
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    train_pairs = read_corpus(recipe.data, "train", recipe_path.parent)
    valid_pairs = read_corpus(recipe.data, "valid", recipe_path.parent)
    tokenizers = stored_tokenizers(saved[0]) if saved else train_tokenizers(train_pairs, recipe.vocabulary)
    with Reporter(folder, first_step=saved[2]["step"] if saved else 0) as reporter, StopRequest() as stop:
        trainer = Trainer(
            recipe,
            tokenizers,
            train_pairs,
            valid_pairs,
            folder=folder,
            device=chosen,
            reporter=reporter,
            stop=stop,
        )
        if saved:
            trainer.restore(saved[0], saved[2])
        try:
            reason = trainer.run()
        except KeyboardInterrupt:
            click.echo(f"Stopped; go on from {last} with --resume.", err=True)
            raise SystemExit(130) from None
    click.echo(
        f"Done: {reason}. The best model has BLEU {trainer.progress.best_bleu:.2f} on validation.\n"
        f"Export it: dragoman export {trainer.best_path} --out models/{recipe.name}/1"
    )
