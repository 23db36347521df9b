"""The pairs that a checkpoint was trained on, found again, for what else is learnt from them."""

from pathlib import Path

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.corpus import Corpus, CorpusError, read_corpus
from dragoman_training.validation import spread


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
