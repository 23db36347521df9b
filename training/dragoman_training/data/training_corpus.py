"""The pairs that a checkpoint was trained on, found again, for what else is learnt from them."""

from pathlib import Path

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus, CorpusError, read_corpus
from dragoman_training.run.validation import spread

RECIPE_FOLDER = Path("training/recipes")
"""Where paths begin of a checkpoint that remembers no folder, or one that is not on this machine."""


class TrainingCorpusError(ValueError):
    """The training corpus can't be read, or nothing be learnt from it. Says the way out."""


def read_training_corpus(checkpoint: Checkpoint, folder: Path | None = None) -> Corpus:
    """The training pairs that the checkpoint's recipe names; relative paths start at `folder`.

    Without one they start where they did in training, or at `RECIPE_FOLDER` where that folder is gone.
    Raises TrainingCorpusError where they can't be read, or where other pairs stand there now: of the words of
    those a shortlist would know nothing.
    """
    way_out = "Say with --recipe-folder where the recipe's paths start"
    if folder is None:
        folder = _remembered_folder(checkpoint)
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


def _remembered_folder(checkpoint: Checkpoint) -> Path:
    """Where the recipe's relative paths started in training, if that folder is on this machine."""
    remembered = checkpoint.progress.get("data_folder")
    return Path(remembered) if remembered and Path(remembered).is_dir() else RECIPE_FOLDER


def token_pairs(
    corpus: Corpus, source: Tokenizer, target: Tokenizer, *, max_pairs: int, max_tokens: int
) -> list[tuple[list[int], list[int]]]:
    """Token ids of at most so many pairs, evenly spread over the corpus.

    Without those with a longer side, and those with a side of which normalization leaves nothing: training
    leaves them out too.
    """
    used = spread(corpus, max_pairs)
    pairs = zip(source.encode_ids(used.sources), target.encode_ids(used.targets), strict=True)
    return [pair for pair in pairs if all(pair) and max(map(len, pair)) <= max_tokens]
