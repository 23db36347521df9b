"""The page, in Markdown. Every number in it comes from the findings; it draws no conclusion of its own."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from dragoman_training.classics.study.examination import Centres, Findings
from dragoman_training.classics.study.inputs import Bucket, StudySet
from dragoman_training.classics.study.scores import Score, interval, share_of
from dragoman_training.markdown import code, enumeration, table
from dragoman_training.models import (
    BahdanauConfig,
    LuongConfig,
    ModelConfig,
    MultiHeadConfig,
    PlainConfig,
    StructuredConfig,
    TransformerConfig,
)
from dragoman_training.run.validation import show_perplexity


def paragraph(name: str) -> str:
    """A paragraph of `prose.toml`."""
    text: str = _prose()[name]
    return text


@cache
def _prose() -> dict[str, str]:
    return tomllib.loads(
        files("dragoman_training.classics.study").joinpath("prose.toml").read_text(encoding="utf-8")
    )


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
    data = findings[0].recipe.data
    rows = []
    for finding in findings:
        lower, model = finding.lower_cased.bleu(test_set.own), describe_model(finding.recipe.model)
        cased = _with_interval(finding.cased.score(test_set.own))
        rows.append([code(finding.label), model, f"{finding.num_parameters:,}", cased, f"{lower:.1f}"])
    setting = (
        f"{len(test_set.own):,} sentences, {data.direction}, translated by each model in PyTorch with "
        f"beam {beam_size} and length penalty {length_penalty:g}. BLEU is sacreBLEU's, "
        f"{code(findings[0].cased.signature)}; behind ± is half of its 95% interval, by bootstrap over the "
        "sentences."
    )
    sections = [
        "# What attention does",
        "Made by the command below, every number computed by it: run it again rather than edit the page.",
        f"```\n{command}\n```",
        setting,
        table(["model", "what it is", "parameters", "BLEU", "lower-cased"], rows, words=2),
        length_section(findings, test_set, buckets, links.lengths),
        attention_section(findings, test_set, links.heat_maps),
        centres_section(findings, links.centres),
        _training(findings, links.training),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def describe_model(config: ModelConfig) -> str:
    """A model's family and what sets it apart within it."""
    match config:
        case PlainConfig():
            order = "source reversed" if config.reverse_source else "source not reversed"
            cells = {"lstm": "", "gru": "GRU, ", "rnn": "simple recurrent, ", "rnn-relu": "ReLU recurrent, "}
            return f"plain, {cells[config.cell]}{config.layers} layers, no attention, {order}"
        case LuongConfig():
            window = f", window {config.window}" if config.window else ""
            feeding = "input feeding" if config.input_feeding else "no input feeding"
            return f"Luong, {config.attention} attention{window}, {config.score} score, {feeding}"
        case BahdanauConfig():
            return f"Bahdanau, {config.cell.upper()}"
        case MultiHeadConfig():
            return f"recurrent decoder, {config.heads} heads"
        case StructuredConfig():
            return f"structured self-attention, {config.annotations} vectors"
        case TransformerConfig():
            layers = f"{config.encoder_layers} + {config.decoder_layers} layers"
            return f"Transformer, {config.norm}-norm, {layers}, {config.heads} heads"
    return config.family


def length_section(
    findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket], link: str
) -> str:
    """Figure, table, and whether models without attention fall behind on long sentences."""
    header = ["words", *(bucket.label for bucket in buckets), "length"]
    rows = [["*sentences*", *(f"*{len(bucket.numbers)}*" for bucket in buckets), ""]]
    for finding in findings:
        cells = (_with_interval(finding.cased.score(bucket.numbers)) for bucket in buckets)
        rows.append([code(finding.label), *cells, f"{finding.cased.length(buckets[-1].numbers):.2f}"])
    parts = [
        "## BLEU by length of the source",
        f"![BLEU by words of the source, a line a model]({link})",
        table(header, rows),
        paragraph("length"),
    ]
    if test_set.joined:
        longest = max(bucket.most for bucket in buckets if not bucket.joined)
        trained = [finding.longest_trained for finding in findings if finding.longest_trained is not None]
        is_known = len(trained) == len(findings)
        known = f", and none that the models were trained on more than {max(trained)}" if is_known else ""
        parts.append(
            f"Joined ones are {test_set.join} consecutive sentences each, made one with commas, source and "
            f"reference alike. No source of the test set itself has more than {longest} words{known}. A "
            "model that has learnt from short sentences may end too soon, which BLEU punishes: see the "
            "length."
        )
    return "\n\n".join([*parts, *_fixed_vectors(findings, test_set, buckets)])


def _fixed_vectors(findings: Sequence[Findings], test_set: StudySet, buckets: Sequence[Bucket]) -> list[str]:
    """The shares that models without attention have of the best one with it, and how they change.

    That one is recurrent as they are, where there is one: a Transformer differs in more than attention.
    """
    attending = [finding for finding in findings if finding.sharpness is not None]
    without = [finding for finding in findings if finding.sharpness is None]
    if not attending or not without:
        return []
    recurrent = [each for each in attending if not isinstance(each.recipe.model, TransformerConfig)]
    reference = max(recurrent or attending, key=lambda finding: finding.cased.bleu(test_set.own))
    rows, verdicts = [], []
    for finding in without:
        shares = [share_of(finding.cased, reference.cased, bucket.numbers) for bucket in buckets]
        cells = [f"{share.value:.1%} ± {share.half_width:.1%}" if share else "none" for share in shares]
        rows.append([code(finding.label), *cells])
        verdicts += [f"- {code(finding.label)}, {verdict}" for verdict in _verdicts(buckets, shares)]
    kind = "recurrent model" if recurrent else "model"
    return [
        "### Does a fixed vector break down on long sentences?",
        paragraph("shares").format(best=code(reference.label), kind=kind),
        table(["words", *(bucket.label for bucket in buckets)], rows),
        *(["\n".join(verdicts)] if verdicts else []),
    ]


def _verdicts(buckets: Sequence[Bucket], shares: Sequence[Score | None]) -> Iterator[str]:
    """Whether the share changes from the shortest sentences to the longest, and to joined ones."""
    (short, first), *longer = zip(buckets, shares, strict=True)
    longest = [(bucket, share) for bucket, share in longer if not bucket.joined][-1:]
    joined = [(bucket, share) for bucket, share in longer if bucket.joined]
    for range_name, ends in (("among the test set's sentences", longest), ("on to joined ones", joined)):
        for bucket, last in ends:
            if first is None or last is None:
                continue
            # The draws of two parts do not depend on each other.
            low, high = interval(last.resampled - first.resampled)
            sure = (
                f"difference {(last.value - first.value) * 100:+.1f} points, 95% interval "
                f"{low * 100:+.1f} to {high * 100:+.1f}"
            )
            start, end = f"{first.value:.1%} at {short.label} words", f"{last.value:.1%} at {bucket.label}"
            if low <= 0 <= high:
                yield f"{range_name}: the shares, {start} and {end}, cannot be told apart ({sure})."
            else:
                change, breaks = ("falls", "breaks") if high < 0 else ("rises", "does not break")
                yield (
                    f"{range_name}: the share {change} from {start} to {end} ({sure}): the fixed vector "
                    f"{breaks} down."
                )


def attention_section(findings: Sequence[Findings], test_set: StudySet, links: Sequence[str]) -> str:
    """How attention is spread, and the heat maps of some sentences."""
    parts = ["## Where they look"]
    blind = [code(finding.label) for finding in findings if finding.sharpness is None]
    if blind:
        parts.append(f"Without attention, and so without a picture: {enumeration(blind)}.")
    rows = [
        [code(finding.label), *(f"{number:.2f}" for number in finding.sharpness)]
        for finding in findings
        if finding.sharpness is not None
    ]
    if not rows:
        return "\n\n".join(parts)
    heads = [(finding.label, finding.head) for finding in findings if finding.head is not None]
    prose = [paragraph("sharpness")]
    if heads:
        prose += [paragraph("heads"), *(f"{code(label)}: {head.reason}." for label, head in heads)]
        prose += [paragraph("of_read")] if any(head.of_input for _, head in heads) else []
    pictures = "In the pictures rows are target pieces, columns source pieces, black is a weight of 1"
    cross = "; a cross is where local-p put the middle of its window."
    parts += [
        " ".join(prose),
        table(["model", "largest weight", "entropy in bits", "on the sentence's end", "all weights"], rows),
        pictures + (cross if any(finding.centres for finding in findings) else "."),
    ]
    for number, link in zip(test_set.examples, links, strict=True):
        said = (f"- {code(finding.label)}: {code(finding.translations[number])}" for finding in findings)
        parts += [
            f"### Sentence {number + 1}",
            f"Source: {code(test_set.sources[number])}  \nReference: {code(test_set.references[number])}",
            "\n".join(said),
            f"![Attention of each model in sentence {number + 1}]({link})",
        ]
    return "\n\n".join(parts)


def centres_section(findings: Sequence[Findings], link: str | None) -> str:
    """What local-p predicts, if any model is one."""
    predicted = [(finding.label, finding.centres) for finding in findings if finding.centres is not None]
    if not predicted or link is None:
        return ""
    rows = []
    for label, centres in predicted:
        distance = np.abs(centres.predicted - centres.monotonic).mean()
        last_third = (centres.predicted > centres.source_length * 2 / 3).mean()
        numbers = f"{centres.reach}", f"{len(centres.predicted):,}", f"{distance:.1f}", f"{last_third:.2f}"
        rows.append([code(label), *numbers])
    parts = [
        "## What local-p predicts",
        paragraph("centres"),
        f"![Predicted centre against the position of the target piece and of what it comes from]({link})",
        table(["model", "window", "pieces", "from local-m's", "last third"], rows),
        paragraph("centres_table"),
    ]
    rows = [
        [code(label), code(centres.witness), *_witness_numbers(centres)]
        for label, centres in predicted
        if centres.witness is not None
    ]
    if not rows:
        return "\n\n".join([*parts, paragraph("no_witness")])
    header = ["model", "held against", "pieces", "correlation", "distance", "local-m's", "its distance"]
    return "\n\n".join(
        [*parts, paragraph("witness"), table(header, rows, words=2), paragraph("witness_table")]
    )


def _witness_numbers(centres: Centres) -> list[str]:
    """How near the predicted centre, and local-m's, are to the words that the witness looks at."""
    most, *every_centre = centres.at_words(centres.predicted, centres.monotonic)
    numbers = [f"{len(most):,}"]
    for centre in every_centre:
        varies = len(most) > 0 and centre.std() > 0 and most.std() > 0
        numbers.append(f"{np.corrcoef(centre, most)[0, 1]:.2f}" if varies else "none")
        numbers.append(f"{np.abs(centre - most).mean():.1f}" if len(most) else "none")
    return numbers


def _training(findings: Sequence[Findings], link: str) -> str:
    rows = []
    for finding in findings:
        progress, validations = finding.progress, finding.progress["validations"]
        best = max(validations, key=lambda validation: validation["bleu"], default=None)
        quality = [f"{best['bleu']:.1f}", show_perplexity(best["perplexity"])] if best else ["none", "none"]
        minutes = f"{progress['seconds'] / 60:.0f}"
        rows.append([code(finding.label), f"{len(validations)}", f"{progress['step']:,}", minutes, *quality])
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
            table(["model", "validations", "steps", "minutes", "best BLEU", "its perplexity"], rows),
        ]
    )


def _with_interval(score: Score) -> str:
    return f"{score.value:.1f} ± {score.half_width:.1f}"
