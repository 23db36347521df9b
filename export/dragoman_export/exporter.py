"""Checkpoints that were trained here to a bundle, with what their training corpus gives."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dragoman_bundle.bundle import Bundle

from dragoman_export import assembly
from dragoman_export.assembly import export_subject, with_told
from dragoman_export.graphs.alignment_head import with_alignment_head
from dragoman_export.graphs.builder import Graphs
from dragoman_export.int8.calibration import Steps
from dragoman_export.parity.sentences import CheckText
from dragoman_export.shortlist.builder import build_shortlist
from dragoman_export.shortlist.files import ShortlistFiles
from dragoman_export.shortlist.options import ShortlistOptions
from dragoman_export.trained import TrainedModel, subject_of
from dragoman_training.alignment.aligner import load_aligner
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.corpus import Corpus
from dragoman_training.models import Seq2Seq


def export_bundle(
    members: Sequence[Checkpoint],
    destination: Path,
    *,
    name: str,
    version: str,
    precisions: Sequence[str],
    overwrite: bool = False,
    corpus: Corpus | None = None,
    shortlist_files: ShortlistFiles | None = None,
    shortlist_options: ShortlistOptions | None = None,
    check_text: CheckText | None = None,
    shortlist_aligner: Path | None = None,
    report: Callable[[str], None],
) -> Bundle:
    """Writes a bundle of a checkpoint, or of several as an ensemble, as `export_subject` does.

    From the training corpus, where it is given, a Transformer's alignment head is chosen, and with
    `shortlist_options` a lexical shortlist learnt, by a saved aligner where its folder is given; or that is
    made of files, where they are given. The graphs are checked on the corpus if there is no `check_text`.
    """
    subject, build, asked = subject_of(members), None, "--no-shortlist"
    if corpus is not None:
        subject = with_alignment_head(subject, corpus, report)
        if check_text is None:
            lines = corpus.targets if subject.continues else corpus.sources
            check_text = CheckText.of(lines, "the training corpus")
    if shortlist_options is not None:
        if shortlist_files is not None:
            build = shortlist_files.builder(subject, shortlist_options, report)
            asked = shortlist_options.command_line(shortlist_files.command_line())
        elif corpus is not None:
            aligner = None if shortlist_aligner is None else load_aligner(shortlist_aligner)
            build = partial(build_shortlist, members[0], corpus, shortlist_options, report, aligner)
            asked = shortlist_options.command_line(
                "--shortlist" if shortlist_aligner is None else f"--shortlist-from {shortlist_aligner.name}"
            )
    return export_subject(
        with_told(subject, asked),
        destination,
        name=name,
        version=version,
        precisions=precisions,
        overwrite=overwrite,
        build_shortlist=build,
        check_text=check_text,
        report=report,
    )


def make_graphs(
    model: Seq2Seq,
    precisions: Sequence[str],
    report: Callable[[str], None] = lambda line: None,
    find: Callable[[Graphs], Steps] | None = None,
) -> dict[str, Graphs]:
    """The graphs of a model in PyTorch, as `assembly.make_graphs` makes them."""
    return assembly.make_graphs(TrainedModel(model, bos=0), precisions, report, find)
