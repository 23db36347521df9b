"""The model card: what a person must know of a bundle before using it, as its README.md.

Owns the text. The quality table stands between two markers, so that one measured later can take its place, in
the manifest, too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dragoman_bundle.bundle import open_bundle
from dragoman_bundle.codec import decode
from dragoman_bundle.manifest import CARD_FILE, FORMAT_VERSION, Manifest, Quality
from dragoman_bundle.writer import changed_bundle, seal

from dragoman_export.model import NOT_STATED, Subject
from dragoman_export.parity.gate import Parity
from dragoman_export.parity.sentences import CheckText
from dragoman_training.markdown import table

QUALITY_BEGIN = "<!-- quality: written by dragoman record-quality -->"
QUALITY_END = "<!-- end of quality -->"


def write_card(
    manifest: Manifest, subject: Subject, parities: Mapping[str, Parity], check_text: CheckText | None
) -> str:
    """The card of a bundle that has just been exported, its graphs checked on that text."""
    card = subject.card
    decoding = manifest.decoding
    checked = f"sentences of {check_text.origin}" if check_text else "random tokens, drawn as it says them"
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
        {
            "Precision": precision,
            "Tokens": str(parity.num_tokens),
            "Lost": f"{parity.loss:.1e}",
            "Lost by rounding the reference": f"{parity.rounded_loss:.1e}",
            "Entropy": f"{parity.entropy:.2f}",
            "Same next token": f"{parity.agreement:.1%}",
            "Largest error": f"{parity.max_error:.1e}",
        }
        for precision, parity in parities.items()
    ]
    return f"""# {manifest.name}, version {manifest.version}

{_purpose(manifest, subject)} {description}

{table(("", ""), facts, words=2)}

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
stepped along the model's own outputs for {checked}.
What is lost is the Kullback-Leibler divergence of what the graphs say of the next token from what the
reference says, in nats a token; the reference itself loses some by rounding as int8 does; and the entropy is
how unsure it is of that token. An error is a difference of its log-probability.

{_table(parity_rows)}
"""


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows by the heads of their columns, of which there is one at least."""
    return table(tuple(rows[0]), [tuple(row.values()) for row in rows], words=len(rows[0]))


def replace_quality(card: str, quality: Sequence[Quality]) -> str:
    """The card with another quality table. Raises QualityError where the card has no place for one."""
    before, begin, behind = card.partition(QUALITY_BEGIN)
    _, end, after = behind.partition(QUALITY_END)
    if not begin or not end:
        raise QualityError(
            f'the card has no lines "{QUALITY_BEGIN}" and "{QUALITY_END}" to write the quality between'
        )
    return before + quality_block(quality) + after


def quality_block(quality: Sequence[Quality]) -> str:
    """The quality table between its markers."""
    rows = [
        {
            "Test set": one.test_set,
            "Precision": one.precision,
            "Shortlist": NOT_STATED if one.shortlist is None else "with" if one.shortlist else "without",
            "Beam": str(one.beam_size),
            "Length penalty": NOT_STATED if one.length_penalty is None else f"{one.length_penalty:g}",
            "Metric": one.metric,
            "Score": f"{one.score:.2f}",
            "Signature": f"`{one.signature}`",
        }
        for one in quality
    ]
    return f"{QUALITY_BEGIN}\n{_table(rows) if rows else 'Not measured yet.'}\n{QUALITY_END}"


def _purpose(manifest: Manifest, subject: Subject) -> str:
    if subject.continues:
        return f"Continues text in {manifest.target_language}: of a sentence's beginning it writes the rest."
    if manifest.languages:
        languages = sorted(manifest.languages)
        listed = ", ".join(languages)
        return f"Translates from each of these {len(languages)} languages to each other: {listed}."
    return f"Translates {manifest.source_language} to {manifest.target_language}."


def _vocabulary(manifest: Manifest, subject: Subject) -> str:
    if subject.continues:
        return f"{manifest.target_vocabulary:,} pieces"
    if manifest.source_tokenizer == manifest.target_tokenizer:
        return f"{manifest.source_vocabulary:,} pieces, shared by both languages"
    return f"{manifest.source_vocabulary:,} source and {manifest.target_vocabulary:,} target pieces"


METRICS = {
    "bleu": ("BLEU", "signature"),
    "bleu_lc": ("BLEU lower-cased", "bleu_lc_signature"),
    "chrf": ("chrF", "chrf_signature"),
}
"""What `dragoman evaluate --json` prints: score -> the metric's name, and the key of its signature."""


class QualityError(ValueError):
    """A quality that can't be recorded: of another bundle or command, or of a card with no place for it."""


def record_results(folder: Path, results: Path, *, test_set: str) -> tuple[Quality, ...]:
    """Adds the qualities in a file that `dragoman evaluate --json` printed of this bundle, and returns them.

    They replace those that were measured in the same way. The bundle is replaced as a whole. Raises
    QualityError, OSError, or BundleError where the bundle does not check out.
    """
    manifest = open_bundle(folder).manifest
    measured = _read_results(results, test_set, folder, manifest)
    earlier = [old for old in manifest.quality if not any(_is_same_measure(old, new) for new in measured)]
    # What is written has the keys of today's format.
    manifest = replace(manifest, format_version=FORMAT_VERSION, quality=(*earlier, *measured))
    with changed_bundle(folder) as staging:
        card = staging / CARD_FILE
        card.write_text(replace_quality(card.read_text(encoding="utf-8"), manifest.quality), encoding="utf-8")
        seal(staging, manifest)
    return measured


def _read_results(path: Path, test_set: str, folder: Path, manifest: Manifest) -> tuple[Quality, ...]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        system, bundle, checksum = (results[key] for key in ("system", "bundle", "checksum"))
        measured = tuple(
            decode(
                Quality,
                {
                    "test_set": test_set,
                    "metric": metric,
                    "score": results[score],
                    "signature": results[signature],
                    "precision": results["precision"] or "",
                    "beam_size": results["beam"],
                    "shortlist": results["shortlist"],
                    "length_penalty": results["length_penalty"],
                },
                where=metric,
            )
            for score, (metric, signature) in METRICS.items()
        )
    except KeyError as error:
        raise QualityError(
            f"{path} has no {error}; it must hold what `dragoman evaluate --bundle {folder} --json` prints"
        ) from error
    except (TypeError, ValueError) as error:
        raise QualityError(f"{path} does not hold what `dragoman evaluate --json` prints: {error}") from error
    if checksum != manifest.checksum():
        other = f"of another bundle, {bundle} of checksum {checksum}" if bundle else f"of no bundle: {system}"
        raise QualityError(f"{path} is {other}. Measure this one: dragoman evaluate --bundle {folder} --json")
    return measured


def _is_same_measure(old: Quality, new: Quality) -> bool:
    """Whether both were measured in the same way, as far as the old one tells."""
    same = replace(old, score=new.score, signature=new.signature)
    keys = ("shortlist", "length_penalty")
    return replace(same, **{key: getattr(new, key) for key in keys if getattr(old, key) is None}) == new
