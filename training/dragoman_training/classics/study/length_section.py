"""The page's part on BLEU by the length of the source."""

from collections.abc import Sequence

from dragoman_training.classics.study.buckets import Bucket
from dragoman_training.classics.study.findings import Findings
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.classics.study.shares import Share, change_between, share_of
from dragoman_training.markdown import code, table
from dragoman_training.models import TransformerConfig

_PROSE = """\
Words are what white space separates. Sentences of different lengths differ in more than their length, so \
models are better compared within a column, and columns by how that comparison changes. Length: of the \
translations in the last column of sentences, by that of their references."""

_SHARES_PROSE = """\
The share that models without attention have of the BLEU of {best}, the best {kind} with attention over the \
whole test set. Behind ± is half of its 95% interval, by bootstrap over the sentences, both models on the \
same ones."""


def length_section(
    findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket], link: str
) -> str:
    """Figure, table, and whether models without attention fall behind on long sentences."""
    header = ["words", *(bucket.label for bucket in buckets), "length"]
    rows = [["*sentences*", *(f"*{len(bucket.numbers)}*" for bucket in buckets), ""]]
    for finding in findings:
        scores = [finding.cased.score(bucket.numbers) for bucket in buckets]
        cells = (f"{score.bleu:.1f} ± {score.half_width:.1f}" for score in scores)
        rows.append([code(finding.label), *cells, f"{finding.cased.length(buckets[-1].numbers):.2f}"])
    parts = [
        "## BLEU by length of the source",
        f"![BLEU by words of the source, a line a model]({link})",
        table(header, rows),
        _PROSE,
        *([_joined(findings, test_set, buckets)] if test_set.joined else []),
        *_fixed_vectors(findings, test_set, buckets),
    ]
    return "\n\n".join(parts)


def _joined(findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket]) -> str:
    """What the joined sentences are, and how long ones the models know."""
    longest = max(bucket.most for bucket in buckets if not bucket.joined)
    trained = [finding.longest_trained for finding in findings if finding.longest_trained is not None]
    is_known = len(trained) == len(findings)
    known = f", and none that the models were trained on more than {max(trained)}" if is_known else ""
    return (
        f"Joined ones are {test_set.join} consecutive sentences each, made one with commas, source and "
        f"reference alike. No source of the test set itself has more than {longest} words{known}. A model "
        "that has learnt from short sentences may end too soon, which BLEU punishes: see the length."
    )


def _fixed_vectors(findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket]) -> list[str]:
    """The shares that models without attention have of the best one with it, and how they change.

    That one is recurrent as they are, where there is one: a Transformer differs in more than attention.
    """
    with_attention = [finding for finding in findings if finding.sharpness is not None]
    without = [finding for finding in findings if finding.sharpness is None]
    if not with_attention or not without:
        return []
    recurrent = [
        finding for finding in with_attention if not isinstance(finding.recipe.model, TransformerConfig)
    ]
    reference = max(recurrent or with_attention, key=lambda finding: finding.cased.score(test_set.own).bleu)
    rows, verdicts = [], []
    for finding in without:
        shares = [share_of(finding.cased, reference.cased, bucket.numbers) for bucket in buckets]
        cells = [f"{share.value:.1%} ± {share.half_width:.1%}" if share else "none" for share in shares]
        rows.append([code(finding.label), *cells])
        verdicts += _verdicts(finding.label, buckets, shares)
    return [
        "### Does a fixed vector break down on long sentences?",
        _SHARES_PROSE.format(best=code(reference.label), kind="recurrent model" if recurrent else "model"),
        table(["words", *(bucket.label for bucket in buckets)], rows),
        *(["\n".join(verdicts)] if verdicts else []),
    ]


def _verdicts(label: str, buckets: Sequence[Bucket], shares: Sequence[Share | None]) -> list[str]:
    """From the shortest sentences to the longest, and to joined ones."""
    (short, first), *longer = zip(buckets, shares, strict=True)
    longest = [(bucket, share) for bucket, share in longer if not bucket.joined][-1:]
    joined = [(bucket, share) for bucket, share in longer if bucket.joined]
    return [
        f"- {code(label)}, {range_name}: {verdict(short, first, bucket, share)}"
        for range_name, ends in (("among the test set's sentences", longest), ("on to joined ones", joined))
        for bucket, share in ends
        if first is not None and share is not None
    ]


def verdict(short: Bucket, first: Share, long: Bucket, last: Share) -> str:
    """Whether the share changes from one bucket to another, and what follows."""
    change = change_between(first, last)
    ends = f"{first.value:.1%} at {short.label} words {{}} {last.value:.1%} at {long.label}"
    sure = (
        f"difference {change.difference * 100:+.1f} points, 95% interval {change.low * 100:+.1f} to "
        f"{change.high * 100:+.1f}"
    )
    if change.falls:
        return f"the share falls from {ends.format('to')} ({sure}): the fixed vector breaks down."
    if change.rises:
        return f"the share rises from {ends.format('to')} ({sure}): the fixed vector does not break down."
    return f"the shares, {ends.format('and')}, cannot be told apart ({sure})."
