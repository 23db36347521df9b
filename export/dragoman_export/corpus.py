"""What an export takes from the training corpus, if it can: a shortlist, heads that align, text to check."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.training_corpus import TrainingCorpusError, read_training_corpus


def learns_shortlist(
    members: Sequence[Checkpoint], wanted: bool | None, report: Callable[[str], None]
) -> bool:
    """Whether a shortlist is to be learnt, if the corpus can be read; `wanted`: None where nobody said.

    Raises ValueError where one is wanted of a language model.
    """
    first = members[0].recipe
    if not first.data.has_source:
        if wanted:
            raise ValueError(
                f'a shortlist is learnt from pairs of sentences, and "{first.name}" is a language model; '
                "leave --shortlist out"
            )
        return False
    starts = [start for member in members if (start := member.recipe.training.start_from)]
    if wanted is None and starts:
        # Its words alone would be candidates, and what the model learnt before could not be said any more.
        report(
            f"no shortlist: the model was begun with {starts[0]}, whose corpus the recipe does not name; "
            "--shortlist learns one from the recipe's own"
        )
        return False
    return wanted is not False


def corpus_for_export(
    members: Sequence[Checkpoint],
    recipe_folder: Path | None,
    *,
    max_pairs: int,
    has_shortlist: bool,
    is_needed: bool,
    has_check_text: bool,
    report: Callable[[str], None],
) -> Corpus | None:
    """At most so many pairs; None where they are good for nothing, or neither there nor needed.

    Raises TrainingCorpusError where it is needed and not there.
    """
    has_heads = [member.recipe.model.family for member in members] == ["transformer"]
    if has_check_text and not (has_shortlist or has_heads):
        return None
    try:
        return read_training_corpus(members[0], recipe_folder, max_pairs=max_pairs, report=report)
    except TrainingCorpusError as error:
        if is_needed:
            raise
        if has_shortlist:
            report(f"no shortlist: {error}")
        if has_heads:
            report(f"alignments are the mean of the last layer's heads: {error}")
        if not has_check_text:
            report(f"the graphs are checked on samples of the model's own: {error}")
        return None
