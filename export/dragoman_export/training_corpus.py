"""The pairs that a checkpoint was trained on, found again, for what an export learns from them."""

from pathlib import Path

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.corpus import Corpus, CorpusError, read_corpus


class TrainingCorpusError(ValueError):
    """The training corpus can't be read, or nothing be learnt from it. Says the way out."""


def read_training_corpus(checkpoint: Checkpoint, folder: Path) -> Corpus:
    """The training pairs that the checkpoint's recipe names; relative paths start at `folder`.

    Raises TrainingCorpusError where they can't be read, or where other pairs stand there now: of the words of
    those a shortlist would know nothing.
    """
    way_out = "Say with --recipe-folder where the recipe's paths start"
    try:
        corpus = read_corpus(checkpoint.recipe.data, "train", folder)
    except CorpusError as error:
        raise TrainingCorpusError(f"the training corpus is not there: {error}. {way_out}") from error
    trained, found = checkpoint.progress.get("corpus"), corpus.fingerprint()
    if trained not in (None, found):
        raise TrainingCorpusError(
            f"the files of the training corpus hold other pairs ({found}) than the model was trained on "
            f"({trained}). {way_out}"
        )
    return corpus
