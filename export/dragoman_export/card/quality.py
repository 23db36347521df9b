"""Writes a measured quality into the manifest and the card of a bundle."""

import json
from dataclasses import replace
from pathlib import Path

from dragoman_bundle import Manifest, open_bundle
from dragoman_bundle.codec import decode
from dragoman_bundle.manifest import CARD_FILE, FORMAT_VERSION, Quality
from dragoman_bundle.writer import changed_bundle, seal

from dragoman_export.card.model_card import replace_quality

METRICS = {
    "bleu": ("BLEU", "signature"),
    "bleu_lc": ("BLEU lower-cased", "bleu_lc_signature"),
    "chrf": ("chrF", "chrf_signature"),
}
"""What `dragoman evaluate --json` prints: score -> the metric's name, and the key of its signature."""


class QualityError(ValueError):
    """Results that are not those of `dragoman evaluate --bundle --json`, or of another bundle."""


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
    unrecorded = {
        key: getattr(new, key) for key in ("shortlist", "length_penalty") if getattr(old, key) is None
    }
    return replace(same, **unrecorded) == new
