"""Checkpoints that were trained here to a bundle, with what their training corpus gives.

That is, where it can be read: a shortlist, a head that aligns, text to check the graphs on, and a confidence
that is fitted to the validation set. What serves a bundle translates that; export knows it by its name among
the entry points alone.
"""

import copy
import dataclasses
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from dragoman_bundle.bundle import Bundle, open_bundle

from dragoman_export.assembly import export_subject
from dragoman_export.model import Subject
from dragoman_export.options import Report, ShortlistRequest
from dragoman_export.parity.sentences import CheckText
from dragoman_export.trained import TrainedModel, subject_of
from dragoman_training.alignment.head import choose_head
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.training_corpus import (
    TrainingCorpusError,
    read_training_corpus,
    read_validation_pairs,
)
from dragoman_training.models.transformer import Transformer


def learns_shortlist(members: Sequence[Checkpoint], wanted: bool | None, report: Report) -> bool:
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
    shortlist: ShortlistRequest,
    recipe_folder: Path | None,
    *,
    max_pairs: int,
    has_check_text: bool,
    report: Report,
) -> tuple[Corpus | None, bool]:
    """Reads at most so many pairs, and says whether a shortlist is to be learnt, if they are there.

    None where they are good for nothing, or neither there nor needed. Raises TrainingCorpusError where they
    are needed and not there, and ValueError as `learns_shortlist` does.
    """
    wanted = shortlist.is_wanted
    has_shortlist = not shortlist.has_files and learns_shortlist(members, wanted, report)
    has_heads = [member.recipe.model.family for member in members] == ["transformer"]
    if has_check_text and not (has_shortlist or has_heads):
        return None, has_shortlist
    try:
        corpus = read_training_corpus(members[0], recipe_folder, max_pairs=max_pairs, report=report)
        return corpus, has_shortlist
    except TrainingCorpusError as error:
        if wanted and not shortlist.has_files:
            raise
        if has_shortlist:
            report(f"no shortlist: {error}")
        if has_heads:
            report(f"alignments are the mean of the last layer's heads: {error}")
        if not has_check_text:
            report(f"the graphs are checked on samples of the model's own: {error}")
        return None, has_shortlist


MAX_PAIRS = 500


def calibrated(bundle: Bundle, checkpoint: Checkpoint, folder: Path | None, report: Report) -> Bundle:
    """The bundle with a confidence, or as it is where it can't have one, which is reported.

    The recipe's relative paths start at `folder`, or where they did in training.
    """
    if not checkpoint.recipe.data.has_source:
        return bundle
    (entry_point,) = entry_points(group="dragoman.systems", name="bundle")
    try:
        pairs = read_validation_pairs(checkpoint, folder, max_pairs=MAX_PAIRS)
        report(f"fitting the confidence to {len(pairs)} validation pairs")
        with entry_point.load()(
            str(bundle.path),
            source_language=None,
            target_language=None,
            beam_size=bundle.manifest.decoding.beam_size,
            device="cpu",
            precision="auto",
        ) as system:
            system.calibrate(pairs.sources, pairs.targets)
    except (ValueError, ModuleNotFoundError) as error:
        report(f"no confidence: {error}; `dragoman evaluate --calibrate` fits one to other text")
    return open_bundle(bundle.path)


def with_alignment_head(subject: Subject, corpus: Corpus, report: Report) -> Subject:
    """The subject with the head chosen that agrees best; as it is where none does better than the mean.

    `report` is told what was found.
    """
    assert isinstance(subject.model, TrainedModel)
    model = subject.model.model
    if not isinstance(model, Transformer):
        return subject
    chosen = choose_head(
        model,
        subject.source_tokenizer,
        subject.target_tokenizer,
        corpus,
        max_tokens=subject.decoding.max_source_tokens - 1,  # Its end is a token too.
    )
    report(f"alignments: {chosen.reason}")
    if chosen.head is None:
        return subject
    model = copy.copy(model)
    model.alignment_head = chosen.head
    trained = dataclasses.replace(subject.model, model=model)
    return dataclasses.replace(subject, model=trained, attention_of_input=chosen.of_input)


def export_bundle(
    members: Sequence[Checkpoint],
    destination: Path,
    *,
    precisions: Sequence[str],
    overwrite: bool = False,
    corpus: Corpus | None = None,
    shortlist: ShortlistRequest | None = None,
    check_text: CheckText | None = None,
    report: Report,
) -> Bundle:
    """Writes a bundle of a checkpoint, or of several as an ensemble, as `export_subject` does.

    From the training corpus, where it is given, a Transformer's alignment head is chosen, and a shortlist is
    learnt that is made of no files. The graphs are checked on the corpus if there is no `check_text`.
    """
    subject, build, asked = subject_of(members), None, "--no-shortlist"
    if corpus is not None:
        subject = with_alignment_head(subject, corpus, report)
        if check_text is None:
            lines = corpus.targets if subject.continues else corpus.sources
            check_text = CheckText.of(lines, "the training corpus")
    if shortlist is not None and (shortlist.has_files or corpus is not None):
        build = shortlist.builder(subject, report, corpus, members[0].recipe.data.max_tokens)
        asked = shortlist.command_line()
    return export_subject(
        subject.telling(asked),
        destination,
        precisions=precisions,
        overwrite=overwrite,
        build_shortlist=build,
        check_text=check_text,
        report=report,
    )
