"""The page, in Markdown. Every number in it comes from the findings; it draws no conclusion of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_training.classics.study.attention_section import attention_section, centres_section
from dragoman_training.classics.study.buckets import Bucket
from dragoman_training.classics.study.description import describe_model
from dragoman_training.classics.study.findings import Findings
from dragoman_training.classics.study.inputs import StudySet
from dragoman_training.classics.study.length_section import length_section
from dragoman_training.markdown import code, table
from dragoman_training.run.validation import show_perplexity


@dataclass(frozen=True, kw_only=True)
class FigureLinks:
    """The figures, as the page links them."""

    lengths: str
    """BLEU by length."""
    training: str
    """Training curves."""
    heat_maps: tuple[str, ...]
    """One for each example; none where no model has attention."""
    centres: str | None
    """None without a local-p model."""


def study_page(
    command: str,
    findings: Sequence[Findings],
    buckets: Sequence[Bucket],
    test_set: StudySet,
    links: FigureLinks,
    *,
    beam_size: int,
    length_penalty: float,
) -> str:
    """The whole page."""
    sections = [
        _head(command, findings, test_set, beam_size, length_penalty),
        length_section(findings, test_set, buckets, links.lengths),
        attention_section(findings, test_set, links.heat_maps),
        centres_section(findings, links.centres),
        _training(findings, links.training),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(
    command: str, findings: Sequence[Findings], test_set: StudySet, beam_size: int, length_penalty: float
) -> str:
    data = findings[0].recipe.data
    rows = []
    for finding in findings:
        cased, lower = finding.cased.score(test_set.own), finding.lower_cased.score(test_set.own)
        rows.append(
            [
                code(finding.label),
                describe_model(finding.recipe.model),
                f"{finding.num_parameters:,}",
                f"{cased.bleu:.1f} ± {cased.half_width:.1f}",
                f"{lower.bleu:.1f}",
            ]
        )
    setting = (
        f"{len(test_set.own):,} sentences, {data.direction}, translated by each model in PyTorch with "
        f"beam {beam_size} and length penalty {length_penalty:g}. BLEU is sacreBLEU's, "
        f"{code(findings[0].cased.signature)}; behind ± is half of its 95% interval, by bootstrap over the "
        "sentences."
    )
    return "\n\n".join(
        [
            "# What attention does",
            "Made by the command below, every number computed by it: run it again rather than edit the page.",
            f"```\n{command}\n```",
            setting,
            table(["model", "what it is", "parameters", "BLEU", "lower-cased"], rows, words=2),
        ]
    )


def _training(findings: Sequence[Findings], link: str) -> str:
    rows = []
    for finding in findings:
        validations = finding.progress["validations"]
        highest = max(validations, key=lambda validation: validation["bleu"], default=None)
        rows.append(
            [
                code(finding.label),
                f"{len(validations)}",
                f"{finding.progress['step']:,}",
                f"{finding.progress['seconds'] / 60:.0f}",
                f"{highest['bleu']:.1f}" if highest else "none",
                show_perplexity(highest["perplexity"]) if highest else "none",
            ]
        )
    header = ["model", "validations", "steps", "minutes", "best BLEU", "its perplexity"]
    same = len({finding.vocabularies[1] for finding in findings}) == 1
    comparable = (
        "All models say the same pieces, so their perplexities are comparable."
        if same
        else "The models do not all say the same pieces, so perplexities of different vocabularies are not "
        "comparable."
    )
    return "\n\n".join(
        [
            "## Training curves",
            f"Every validation up to the checkpoint. {comparable}",
            f"![Validation BLEU and perplexity by minutes and by steps]({link})",
            table(header, rows),
        ]
    )
