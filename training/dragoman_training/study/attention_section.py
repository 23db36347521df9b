"""The page's parts on where the models look, and on what local-p predicts."""

from collections.abc import Sequence

import numpy as np

from dragoman_training.markdown import code, enumeration, table
from dragoman_training.study.findings import Centres, Findings
from dragoman_training.study.inputs import StudySet

_SHARPNESS_PROSE = """\
Means over all target pieces of the test set, along each model's own translations. The largest weight is \
that of the source piece looked at most. A Transformer's weights are the mean of the heads of its last \
layer."""

_CENTRES_PROSE = """\
For every target piece local-p predicts where in the source the middle of its window is (Luong et al. \
2015, equation 9). Darker is more target pieces, on a logarithmic scale. The dotted line is where both \
positions are the same; on the left that is what local-m would take."""

_CENTRES_TABLE_PROSE = """\
Window: positions to either side. Correlation: of the predicted centre with the source position looked at \
most. The next two columns: mean distance of the predicted centre, in source pieces, from that position \
and from the centre that local-m would take, min(t, S). Last third: share of predicted centres in the last \
third of their source; a third if they were spread evenly."""


def attention_section(findings: Sequence[Findings], test_set: StudySet, links: Sequence[str]) -> str:
    """How attention is spread, and the heat maps of some sentences."""
    parts = ["## Where they look"]
    rows = [
        [
            code(each.label),
            f"{each.sharpness.largest:.2f}",
            f"{each.sharpness.entropy_bits:.2f}",
            f"{each.sharpness.end_share:.2f}",
            f"{each.sharpness.total:.2f}",
        ]
        for each in findings
        if each.sharpness is not None
    ]
    blind = [code(each.label) for each in findings if each.sharpness is None]
    if blind:
        parts.append(f"Without attention, and so without a picture: {enumeration(blind)}.")
    if not rows:
        return "\n\n".join(parts)
    header = ["model", "largest weight", "entropy in bits", "on the sentence's end", "all weights"]
    parts += [
        _SHARPNESS_PROSE,
        table(header, rows),
        "In the pictures rows are target pieces, columns source pieces, black is a weight of 1"
        + (
            "; a cross is where local-p put the middle of its window."
            if any(each.centres for each in findings)
            else "."
        ),
    ]
    for place, (number, link) in enumerate(zip(test_set.examples, links, strict=True)):
        lines = [
            f"### Sentence {number + 1}",
            f"Source: {code(test_set.sources[number])}  ",
            f"Reference: {code(test_set.references[number])}",
            "",
            *(f"- {code(each.label)}: {code(each.translations[number])}" for each in findings),
            "",
            f"![Attention of each model in sentence {number + 1}]({link})",
        ]
        assert any(len(each.examples) > place for each in findings)
        parts.append("\n".join([lines[0], "", *lines[1:]]))
    return "\n\n".join(parts)


def centres_section(findings: Sequence[Findings], link: str | None) -> str:
    """What local-p predicts, if any model is one."""
    predicted = [(each.label, each.centres) for each in findings if each.centres is not None]
    if not predicted or link is None:
        return ""
    rows = [[code(label), *_centre_numbers(centres)] for label, centres in predicted]
    header = [
        "model",
        "window",
        "pieces",
        "correlation",
        "from most looked at",
        "from local-m's",
        "last third",
    ]
    return "\n\n".join(
        [
            "## What local-p predicts",
            _CENTRES_PROSE,
            f"![Predicted centre against the target's position and the position looked at most]({link})",
            table(header, rows),
            _CENTRES_TABLE_PROSE,
        ]
    )


def _centre_numbers(centres: Centres) -> list[str]:
    predicted, most = centres.predicted, centres.most_looked_at
    varies = predicted.std() > 0 and most.std() > 0
    correlation = f"{np.corrcoef(predicted, most)[0, 1]:.2f}" if varies else "none"
    monotonic = np.minimum(centres.target_position, centres.source_length)
    return [
        f"{centres.reach}",
        f"{len(predicted):,}",
        correlation,
        f"{np.abs(predicted - most).mean():.1f}",
        f"{np.abs(predicted - monotonic).mean():.1f}",
        f"{(predicted > centres.source_length * 2 / 3).mean():.2f}",
    ]
