"""The page's part on BLEU by the length of the source."""

from collections.abc import Sequence

from dragoman_training.markdown import code, enumeration, table
from dragoman_training.study.buckets import Bucket
from dragoman_training.study.findings import Findings

_PROSE = """\
Words are what white space separates. Sentences of different lengths differ in more than their length, so \
models are better compared within a column, and columns by how that comparison changes."""


def length_section(findings: Sequence[Findings], buckets: Sequence[Bucket], link: str) -> str:
    """Figure, table, and how far models without attention are behind the best one with it."""
    rows = [["*sentences*", *(f"*{len(bucket.numbers)}*" for bucket in buckets), ""]]
    for each in findings:
        scores = [each.cased.score(bucket.numbers) for bucket in buckets]
        cells = (f"{score.bleu:.1f} ± {score.half_width:.1f}" for score in scores)
        rows.append([code(each.label), *cells, f"{scores[-1].bleu - scores[0].bleu:+.1f}"])
    header = ["words", *(bucket.label for bucket in buckets), "last less first"]
    parts = [
        "## BLEU by length of the source",
        f"![BLEU by words of the source, a line a model]({link})",
        table(header, rows),
        _PROSE,
        *_fixed_vectors(findings, buckets),
    ]
    return "\n\n".join(parts)


def _fixed_vectors(findings: Sequence[Findings], buckets: Sequence[Bucket]) -> list[str]:
    """A sentence on each model without attention: its distance to the best one with it, by bucket."""
    with_attention = [each for each in findings if each.sharpness is not None]
    without = [each for each in findings if each.sharpness is None]
    if not with_attention or not without:
        return []
    everything = range(len(findings[0].translations))
    best = max(with_attention, key=lambda each: each.cased.score(everything).bleu)
    sentences = ["Does a fixed vector break down on long sentences?"]
    for each in without:
        distances = [
            f"{best.cased.score(bucket.numbers).bleu - each.cased.score(bucket.numbers).bleu:+.1f} at "
            f"{bucket.label} words"
            for bucket in buckets
        ]
        sentences.append(
            f"Against {code(each.label)}, which has no attention, {code(best.label)}, the best model "
            f"with attention, has {enumeration(distances)}."
        )
    return [" ".join(sentences)]
