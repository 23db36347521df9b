"""`dragoman train`: wiring of recipe, corpus, vocabulary and trainer."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman_bundle.tokenizers.tokenizer import Tokenizer

    from dragoman_training.data.training_pairs import FilePairs
    from dragoman_training.processes import Processes
    from dragoman_training.recipe.settings import Recipe
    from dragoman_training.run.validation import Progress


@click.command()
@click.argument(
    "recipe_path", metavar="RECIPE.toml", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.argument("more_overrides", metavar="", nargs=-1)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE ...",
    multiple=True,
    help="Override values of the recipe, such as training.seed=2; paths are relative to it. Repeatable.",
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
    "--corpus-cache",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for training pairs as token ids, made once for the same files, vocabulary and options. It "
    "can be deleted when nobody trains. Default: corpus-cache beside the folder of checkpoints.",
)
@click.option("--resume", is_flag=True, help="Go on from the folder's last checkpoint.")
def train(
    recipe_path: Path,
    more_overrides: tuple[str, ...],
    overrides: tuple[str, ...],
    out: Path | None,
    device: str,
    corpus_cache: Path | None,
    resume: bool,
) -> None:
    """Train a model by a recipe.

    Writes best.safetensors, the model to export, and last.safetensors, the state to resume from. Ctrl-C and
    SIGTERM finish the step, save and stop; on a CPU a resumed run ends with the numbers of one that was never
    stopped. Under torchrun several processes train one model, each adding batches of its own to every step
    (NCCL on GPUs, gloo on CPUs).

    \b
    Examples:
      dragoman train training/recipes/multi30k-luong.toml
      dragoman train training/recipes/multi30k-luong.toml --set training.max_epochs=3 name=short
      dragoman train training/recipes/multi30k-luong.toml --resume
      dragoman train our-texts.toml --set training.start_from=runs/general/best.safetensors
      torchrun --nproc-per-node 2 -m dragoman_training training/recipes/multi30k-luong.toml
      tensorboard --logdir runs
    """
    from dragoman_training.processes import join_processes
    from dragoman_training.recipe.reader import has_card, load_recipe, name_other_data
    from dragoman_training.run.run_folder import claimed

    if stray := [word for word in more_overrides if "=" not in word]:
        raise click.UsageError(f"{stray[0]!r} is no KEY=VALUE, and there is one recipe a run")
    # An option takes one value: those that follow it stand by themselves.
    overrides += more_overrides
    keys = [override.partition("=")[0] for override in overrides]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise click.UsageError(f"{twice[0]} is set twice")
    recipe = load_recipe(recipe_path, overrides)
    folder = out or Path("runs") / recipe.name
    card = recipe.card
    with join_processes(device) as processes, claimed(folder) if processes.leads else nullcontext():
        is_stated = card.data and card.licence and card.credit
        if processes.leads and name_other_data(recipe_path, overrides) and not is_stated:
            left_out = ", and so its [card] is left out" if has_card(recipe_path) else ""
            click.echo(
                f"The training data is not the recipe's{left_out}: "
                "say with --set card.data=…, card.licence=… and card.credit=… what holds of yours."
            )
        cache = corpus_cache or folder.absolute().parent / "corpus-cache"
        _train(recipe, recipe_path.parent, folder, cache, processes, resume=resume)


def _train(
    recipe: "Recipe", data_folder: Path, folder: Path, cache: Path, processes: "Processes", *, resume: bool
) -> None:
    """One process's part in the training."""
    import torch

    from dragoman_training.checkpoint import read_checkpoint, stored_tokenizers
    from dragoman_training.data.files import read_corpus
    from dragoman_training.data.training_pairs import open_training_pairs
    from dragoman_training.run.objective import load_linker
    from dragoman_training.run.reporter import Reporter
    from dragoman_training.run.resuming import changed_on_resuming, check_resumable, load_start
    from dragoman_training.run.run_folder import StopRequest, left_by_another
    from dragoman_training.run.trainer import Trainer

    last = folder / "last.safetensors"
    # The process that leads may soon write it: what the others would see is asked of it.
    exists = processes.from_leader(last.exists())
    leftover = processes.from_leader(left_by_another(folder))
    if leftover and not resume:
        raise ValueError(leftover)
    if resume and not exists:
        raise ValueError(f"there is nothing to resume: {last} does not exist")
    # On several machines only the one that leads has it.
    saved = processes.made_by_leader(lambda: read_checkpoint(last)) if resume else None
    if saved:
        check_resumable(saved[1], recipe)
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    say = click.echo if processes.leads else lambda line: None
    say("Reading the corpora.")
    valid_pairs = read_corpus(recipe.data, "valid", data_folder)
    given = recipe, data_folder, cache, say, load_linker
    train_pairs = processes.leader_first(lambda: open_training_pairs(*given))
    start = None if saved else load_start(recipe, data_folder)
    if saved:
        tokenizers = stored_tokenizers(saved[0])
    elif start:
        tokenizers = start.source_tokenizer, start.target_tokenizer
    else:
        tokenizers = _new_tokenizers(recipe, train_pairs, processes)
    tokenized = processes.leader_first(lambda: train_pairs.tokenized(tokenizers))
    first_step = saved[2]["step"] if saved else 0
    reporting = Reporter(folder, first_step=first_step) if processes.leads else nullcontext()
    with reporting as reporter, StopRequest(quiet=not processes.leads) as stop:
        texts = recipe, tokenizers, tokenized, valid_pairs
        trainer = Trainer(*texts, folder=folder, processes=processes, reporter=reporter, stop=stop)
        if start:
            trainer.begin_with(start)
        if saved:
            trainer.restore(saved[0], saved[2], changed_on_resuming(saved[1], recipe))
        trainer.progress.data_folder = str(data_folder.resolve())
        try:
            reason = trainer.run()
        except KeyboardInterrupt:
            if processes.leads:
                way_on = f"go on from {last} with --resume" if last.exists() else "nothing was saved yet"
                click.echo(f"Stopped; {way_on}.", err=True)
            raise SystemExit(130) from None
    if trainer.progress.best_step == 0:
        say("No validation was better than that of the model it was begun with, which stays the best.")
    say(f"Done: {reason}. {_best_and_way_on(recipe, trainer.progress, trainer.best_path)}")


def _best_and_way_on(recipe: "Recipe", progress: "Progress", path: Path) -> str:
    """How good the best model is, and the command that comes next."""
    from dragoman_training.run.validation import show_perplexity

    assert progress.best_perplexity is not None  # Every run that ends has validated.
    quality = f"perplexity {show_perplexity(progress.best_perplexity)} on validation"
    command = f"Measure it: dragoman evaluate --checkpoint {path} --reference FILE"
    if recipe.data.has_source:
        quality = f"BLEU {progress.best_bleu:.2f} and {quality}"
        command = f"Export it: dragoman export {path} --out models/{recipe.name}/1"
    return f"The best model has {quality}.\n{command}"


def _new_tokenizers(
    recipe: "Recipe", train_pairs: "FilePairs", processes: "Processes"
) -> tuple["Tokenizer", "Tokenizer"]:
    """Those that the process which leads trains on the corpus, in every process."""
    from dragoman_bundle.tokenizers.tokenizer import Tokenizer

    models = processes.made_by_leader(lambda: [trained.model for trained in train_pairs.learn_vocabulary()])
    source = Tokenizer(models[0])
    return source, source if recipe.vocabulary.shared else Tokenizer(models[1])
