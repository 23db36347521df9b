"""The page's parts on where the models look, and on what local-p predicts."""

from collections.abc import Sequence

import numpy as np

from dragoman_training.classics.study.findings import Centres, Findings, Witness
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.markdown import code, enumeration, table

_SHARPNESS_PROSE = """\
Means over all target pieces of the test set, along each model's own translations. The largest weight is \
that of the source piece looked at most."""

_HEADS_PROSE = """\
A Transformer's weights are of the head that `dragoman export` would give out as alignments, or where none \
is chosen the mean over the heads of its last layer."""

_OF_READ_PROSE = """\
Of the token read: the weights are those of the step that reads a piece, and the sentence's end, which no \
step reads, has none."""

_CENTRES_PROSE = """\
For every target piece local-p predicts where in the source the middle of its window is (Luong et al. \
2015, equation 9). Ends of sentences, which come from no word, are left out here. Darker is more target \
pieces, on a logarithmic scale. The dotted line is where both positions are the same; on the left that is \
what local-m would take, min(t, S)."""

_CENTRES_TABLE_PROSE = """\
Window: positions to either side. From local-m's: mean distance of the predicted centre, in source pieces, \
from the one that local-m would take. Last third: share of predicted centres in the last third of their \
source; a third if they were spread evenly."""

_WITNESS_PROSE = """\
Local-p's own weights can't tell how well it predicts, as they are its window's. So the centres are held \
against the source position that another model looks at most, made to say the very translations of local-p: \
the best recurrent model of the study with one global attention and the same pieces. Pieces for which that \
looks at the sentence's end, and so at no word, are left out."""

_WITNESS_TABLE_PROSE = """\
Correlation: of the predicted centre with that position. Distance: the mean between them, in source pieces. \
Then both for the centre that local-m would take."""

_NO_WITNESS_PROSE = """\
What else the centres could be held against the study does not have: a recurrent model with one global \
attention and the same pieces."""


def attention_section(findings: Sequence[Findings], test_set: StudySet, links: Sequence[str]) -> str:
    """How attention is spread, and the heat maps of some sentences."""
    parts = ["## Where they look"]
    rows = [
        [
            code(finding.label),
            f"{finding.sharpness.largest:.2f}",
            f"{finding.sharpness.entropy_bits:.2f}",
            f"{finding.sharpness.end_share:.2f}",
            f"{finding.sharpness.total:.2f}",
        ]
        for finding in findings
        if finding.sharpness is not None
    ]
    blind = [code(finding.label) for finding in findings if finding.sharpness is None]
    if blind:
        parts.append(f"Without attention, and so without a picture: {enumeration(blind)}.")
    if not rows:
        return "\n\n".join(parts)
    header = ["model", "largest weight", "entropy in bits", "on the sentence's end", "all weights"]
    parts += [
        " ".join([_SHARPNESS_PROSE, *_heads(findings)]),
        table(header, rows),
        "In the pictures rows are target pieces, columns source pieces, black is a weight of 1"
        + (
            "; a cross is where local-p put the middle of its window."
            if any(finding.centres for finding in findings)
            else "."
        ),
    ]
    for rank, (number, link) in enumerate(zip(test_set.examples, links, strict=True)):
        lines = [
            f"### Sentence {number + 1}",
            f"Source: {code(test_set.sources[number])}  ",
            f"Reference: {code(test_set.references[number])}",
            "",
            *(f"- {code(finding.label)}: {code(finding.translations[number])}" for finding in findings),
            "",
            f"![Attention of each model in sentence {number + 1}]({link})",
        ]
        assert any(len(finding.examples) > rank for finding in findings)
        parts.append("\n".join([lines[0], "", *lines[1:]]))
    return "\n\n".join(parts)


def centres_section(findings: Sequence[Findings], link: str | None) -> str:
    """What local-p predicts, if any model is one."""
    predicted = [(finding.label, finding.centres) for finding in findings if finding.centres is not None]
    if not predicted or link is None:
        return ""
    header = ["model", "window", "pieces", "from local-m's", "last third"]
    parts = [
        "## What local-p predicts",
        _CENTRES_PROSE,
        f"![Predicted centre against the position of the target piece and of what it comes from]({link})",
        table(header, [[code(label), *_centre_numbers(centres)] for label, centres in predicted]),
        _CENTRES_TABLE_PROSE,
    ]
    rows = [
        [code(label), code(centres.witness.label), *_witness_numbers(centres, centres.witness)]
        for label, centres in predicted
        if centres.witness is not None
    ]
    if not rows:
        return "\n\n".join([*parts, _NO_WITNESS_PROSE])
    header = ["model", "held against", "pieces", "correlation", "distance", "local-m's", "its distance"]
    return "\n\n".join([*parts, _WITNESS_PROSE, table(header, rows, words=2), _WITNESS_TABLE_PROSE])


def _heads(findings: Sequence[Findings]) -> list[str]:
    """Of which heads the weights of Transformers are."""
    chosen = [(finding.label, finding.head) for finding in findings if finding.head is not None]
    if not chosen:
        return []
    items = [f"{code(label)}: {head.told}." for label, head in chosen]
    return [_HEADS_PROSE, *items, *([_OF_READ_PROSE] if any(head.of_input for _, head in chosen) else [])]


def _centre_numbers(centres: Centres) -> list[str]:
    predicted = centres.predicted
    return [
        f"{centres.reach}",
        f"{len(predicted):,}",
        f"{np.abs(predicted - centres.monotonic).mean():.1f}",
        f"{(predicted > centres.source_length * 2 / 3).mean():.2f}",
    ]


def _witness_numbers(centres: Centres, witness: Witness) -> list[str]:
    """How near the predicted centre, and local-m's, are to the words that the witness looks at."""
    most = witness.most_looked_at[centres.at_words]
    numbers = [f"{len(most):,}"]
    for every_centre in (centres.predicted, centres.monotonic):
        centre = every_centre[centres.at_words]
        varies = len(most) > 0 and centre.std() > 0 and most.std() > 0
        numbers.append(f"{np.corrcoef(centre, most)[0, 1]:.2f}" if varies else "none")
        numbers.append(f"{np.abs(centre - most).mean():.1f}" if len(most) else "none")
    return numbers
