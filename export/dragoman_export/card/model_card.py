"""The model card: what a person must know of a bundle before using it, as its README.md.

Owns the text. The quality table stands between two markers, so that one measured later can take its place.
"""

from collections.abc import Mapping, Sequence

from dragoman_bundle.manifest import Manifest, Quality

from dragoman_export.parity.gate import Parity
from dragoman_export.parity.sentences import CheckText
from dragoman_export.subject import NOT_STATED, Subject
from dragoman_training.markdown import table

FACTS_HEAD = ("", "")
QUALITY_HEAD = (
    "Test set",
    "Precision",
    "Shortlist",
    "Beam",
    "Length penalty",
    "Metric",
    "Score",
    "Signature",
)
PARITY_HEAD = (
    "Precision",
    "Tokens",
    "Lost",
    "Lost by rounding the reference",
    "Entropy",
    "Same next token",
    "Largest error",
)

QUALITY_BEGIN = "<!-- quality: written by dragoman record-quality -->"
QUALITY_END = "<!-- end of quality -->"


class CardError(ValueError):
    """A card whose quality table can't be found."""


def write_card(
    manifest: Manifest, subject: Subject, parities: Mapping[str, Parity], check_text: CheckText | None
) -> str:
    """The card of a bundle that has just been exported, its graphs checked on that text."""
    card = subject.card
    decoding = manifest.decoding
    out = f"models/{manifest.key}"
    export = f"--out {out} --precisions {','.join(manifest.precisions)}"
    description = card.description or "What it is good for was not written down in its recipe."
    facts = [
        ("Family", manifest.architecture.family),
        ("Parameters", f"{manifest.architecture.parameters:,}"),
        ("Sizes", manifest.architecture.description),
        ("Vocabulary", _vocabulary(manifest, subject)),
        ("Precisions", ", ".join(manifest.precisions)),
        ("Training data", card.data or NOT_STATED),
        ("Licence", manifest.licence or NOT_STATED),
        ("Credit", manifest.credit or NOT_STATED),
    ]
    parity_rows = [
        (
            precision,
            str(parity.num_tokens),
            f"{parity.loss:.1e}",
            f"{parity.rounded_loss:.1e}",
            f"{parity.entropy:.2f}",
            f"{parity.agreement:.1%}",
            f"{parity.max_error:.1e}",
        )
        for precision, parity in parities.items()
    ]
    return f"""# {manifest.name}, version {manifest.version}

{_purpose(manifest, subject)} {description}

{table(FACTS_HEAD, facts, words=len(FACTS_HEAD))}

## Quality

{quality_block(manifest.quality)}

## Limits

- Made for sentences of up to {decoding.max_source_tokens} source tokens; a longer one must be split or cut.
- Writes at most {decoding.max_output_tokens} tokens per sentence, and no more than
  {decoding.max_output_ratio:g} for each source token and {decoding.max_output_margin} besides.
- Knows what its training data knows. Words and scripts that are not in it become unknown tokens, and what it
  makes of another kind of text can be fluent and wrong.

## Training

{subject.training.replace("{export}", export)}

## Parity with the reference

Before the bundle was written, its graphs and their reference, {subject.model.reference_name}, were
stepped along the model's own outputs for {_sentences(check_text)}.
What is lost is the Kullback-Leibler divergence of what the graphs say of the next token from what the
reference says, in nats a token; the reference itself loses some by rounding as int8 does; and the entropy is
how unsure it is of that token. An error is a difference of its log-probability.

{table(PARITY_HEAD, parity_rows, words=len(PARITY_HEAD))}
"""


def replace_quality(card: str, quality: Sequence[Quality]) -> str:
    """The card with another quality table. Raises CardError where the card has no place for one."""
    before, begin, behind = card.partition(QUALITY_BEGIN)
    _, end, after = behind.partition(QUALITY_END)
    if not begin or not end:
        raise CardError(
            f'the card has no lines "{QUALITY_BEGIN}" and "{QUALITY_END}" to write the quality between'
        )
    return before + quality_block(quality) + after


def quality_block(quality: Sequence[Quality]) -> str:
    """The quality table between its markers."""
    measured = "Not measured yet."
    if quality:
        measured = table(
            QUALITY_HEAD,
            [
                (
                    one.test_set,
                    one.precision,
                    NOT_STATED if one.shortlist is None else "with" if one.shortlist else "without",
                    str(one.beam_size),
                    NOT_STATED if one.length_penalty is None else f"{one.length_penalty:g}",
                    one.metric,
                    f"{one.score:.2f}",
                    f"`{one.signature}`",
                )
                for one in quality
            ],
            words=len(QUALITY_HEAD),
        )
    return f"{QUALITY_BEGIN}\n{measured}\n{QUALITY_END}"


def _purpose(manifest: Manifest, subject: Subject) -> str:
    if subject.continues:
        return f"Continues text in {manifest.target_language}: of a sentence's beginning it writes the rest."
    if manifest.languages:
        languages = ", ".join(sorted(manifest.languages))
        return (
            f"Translates from each of these {len(manifest.languages)} languages to each other: {languages}."
        )
    return f"Translates {manifest.source_language} to {manifest.target_language}."


def _sentences(check_text: CheckText | None) -> str:
    if check_text is None:
        return "random tokens, drawn as it says them"
    return f"sentences of {check_text.origin}"


def _vocabulary(manifest: Manifest, subject: Subject) -> str:
    if subject.continues:
        return f"{manifest.target_vocabulary:,} pieces"
    if manifest.source_tokenizer == manifest.target_tokenizer:
        return f"{manifest.source_vocabulary:,} pieces, shared by both languages"
    return f"{manifest.source_vocabulary:,} source and {manifest.target_vocabulary:,} target pieces"
