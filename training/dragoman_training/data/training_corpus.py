"""The pairs that a checkpoint was trained on, found again, for what else is learnt from them."""

from pathlib import Path

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus, CorpusError, spread
from dragoman_training.data.files import parts_of, read_corpus
from dragoman_training.data.survey import fingerprint_of, read_sample, survey
from dragoman_training.time_left import Say

RECIPE_FOLDER = Path("training/recipes")
"""Where paths begin of a checkpoint that remembers no folder, or one that is not on this machine."""

SAMPLE_PAIRS = 500_000
"""Training pairs that are learnt from, unless someone says another number."""


class TrainingCorpusError(ValueError):
    """The training corpus can't be read, or nothing be learnt from it. Says the way out."""


def read_training_corpus(
    checkpoint: Checkpoint,
    folder: Path | None = None,
    *,
    max_pairs: int = SAMPLE_PAIRS,
    report: Say = lambda line: None,
) -> Corpus:
    """The training pairs that the checkpoint's recipe names; of a larger corpus so many, evenly spread.

    Pairs that the recipe's filter leaves out are none of them. Relative paths start at `folder`; without one
    where they did in training, or at `RECIPE_FOLDER` where that folder is gone. A sample is reported.
    Raises TrainingCorpusError where they can't be read, or where other pairs stand there now: of the words of
    those a shortlist would know nothing.
    """
    way_out = "Say with --recipe-folder where the recipe's paths start"
    if folder is None:
        folder, remembered = _remembered_folder(checkpoint)
        if remembered not in (None, str(folder)):
            way_out += f"; in training they did at {remembered}, which is not on this machine"
    recipe, trained = checkpoint.recipe, checkpoint.progress.get("corpus")
    try:
        parts = parts_of(recipe.data, "train", folder)
        facts = survey(parts)
        sample = read_sample(parts, facts, max_pairs, recipe.filter)
        if not len(sample):
            raise CorpusError("data: the train files hold no sentence pair")
        found = None if trained is None else fingerprint_of(parts)
    except CorpusError as error:
        raise TrainingCorpusError(f"the training corpus is not there: {error}. {way_out}") from error
    if trained not in (None, found):
        raise TrainingCorpusError(
            f"the files of the training corpus hold other pairs ({found}) than the model was trained on "
            f"({trained}). {way_out}"
        )
    if (count := sum(facts[part.paths[0]].num_lines for part in parts)) > max_pairs:
        report(f"learning from {max_pairs:,} of {count:,} training pairs, evenly spread")
    return sample


def read_validation_pairs(checkpoint: Checkpoint, folder: Path | None = None, *, max_pairs: int) -> Corpus:
    """Reads at most so many of the validation pairs, evenly spread, from where `read_training_corpus` looks.
    Raises CorpusError where they can't be read."""
    data = checkpoint.recipe.data
    return spread(read_corpus(data, "valid", folder or _remembered_folder(checkpoint)[0]), max_pairs)


def _remembered_folder(checkpoint: Checkpoint) -> tuple[Path, str | None]:
    """Where the recipe's relative paths start, and where they did in training, if the checkpoint says so."""
    remembered = checkpoint.progress.get("data_folder")
    return Path(remembered) if remembered and Path(remembered).is_dir() else RECIPE_FOLDER, remembered


def token_pairs(
    corpus: Corpus, source: Tokenizer, target: Tokenizer, *, max_pairs: int, max_tokens: int
) -> list[tuple[list[int], list[int]]]:
    """Token ids of at most so many pairs, evenly spread over the corpus.

    Without those with a longer side or one of which normalization leaves nothing, as in training.
    """
    used = spread(corpus, max_pairs)
    pairs = zip(source.encode_ids(used.sources), target.encode_ids(used.targets), strict=True)
    return [pair for pair in pairs if all(pair) and max(map(len, pair)) <= max_tokens]
