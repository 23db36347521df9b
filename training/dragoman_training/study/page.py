"""The page, in Markdown. Every number in it comes from the findings; it draws no conclusion of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_training.study.buckets import Bucket
from dragoman_training.study.describe import describe_model
from dragoman_training.study.examination import TestSet
from dragoman_training.study.findings import Centres, Findings


@dataclass(frozen=True, kw_only=True)
class Links:
    """The figures, as the page links them."""

    lengths: str
    training: str
    heat_maps: tuple[str, ...]
    """One for each example; none where no model has attention."""
    centres: str | None
    """None without a local-p model."""


def write_page(
    command: str,
    findings: Sequence[Findings],
    buckets: Sequence[Bucket],
    test_set: TestSet,
    links: Links,
    *,
    beam_size: int,
) -> str:
    """The whole page."""
    sections = [
        _head(command, findings, test_set, beam_size),
        _lengths(findings, buckets, links.lengths),
        _attention(findings, test_set, links.heat_maps),
        _centres(findings, links.centres),
        _training(findings, links.training),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(command: str, findings: Sequence[Findings], test_set: TestSet, beam_size: int) -> str:
    data = findings[0].recipe.data
    everything = range(len(test_set.sources))
    rows = []
    for each in findings:
        cased, lower = each.cased.score(everything), each.lower_cased.score(everything)
        rows.append(
            [
                _code(each.label),
                describe_model(each.recipe.model),
                f"{each.num_parameters:,}",
                f"{each.progress['step']:,}",
                f"{each.progress['seconds'] / 60:.0f}",
                f"{cased.bleu:.1f} ± {cased.half_width:.1f}",
                f"{lower.bleu:.1f}",
            ]
        )
    header = ["model", "what it is", "parameters", "steps", "minutes", "BLEU", "lower-cased"]
    return f"""# What attention does

Written by the command below, every number computed by it; run it again rather than edit the page.

```
{command}
```

{len(test_set.sources):,} sentences, "{data.source_language}" to "{data.target_language}", translated by each \
model in PyTorch with beam {beam_size}. BLEU is sacreBLEU ({_code(findings[0].cased.signature)}); what stands \
behind ± is half of its 95% interval, by bootstrap over the sentences. Steps and minutes are those of training \
up to the checkpoint, on whatever device that was.

{_table(header, rows)}"""


def _lengths(findings: Sequence[Findings], buckets: Sequence[Bucket], link: str) -> str:
    rows = [["*sentences*", *(f"*{len(bucket.numbers)}*" for bucket in buckets), ""]]
    scores = {each.label: [each.cased.score(bucket.numbers) for bucket in buckets] for each in findings}
    for label, of_buckets in scores.items():
        change = of_buckets[-1].bleu - of_buckets[0].bleu
        cells = (f"{score.bleu:.1f} ± {score.half_width:.1f}" for score in of_buckets)
        rows.append([_code(label), *cells, f"{change:+.1f}"])
    header = ["words", *(bucket.label for bucket in buckets), "last against first"]
    lines = [
        "## BLEU by length of the source",
        f"![BLEU by words of the source, a line a model]({link})",
        _table(header, rows),
        "Sentences are sorted by the words of their source, as white space separates them. All models are "
        "scored on the same sentences; sentences of different length differ in more than that, so what tells "
        "is how models differ within a column, and how that changes along the row.",
    ]
    return "\n\n".join([*lines, *_behind(findings, scores_by_label(scores), buckets)])


def scores_by_label(scores: dict[str, list[object]]) -> dict[str, list[float]]:
    raise NotImplementedError
