"""Writes a measured quality into the manifest and the card of a bundle."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from dragoman_bundle import BundleError, open_bundle
from dragoman_bundle.manifest import CARD_FILE, FORMAT_VERSION, Quality
from dragoman_bundle.writer import seal, staged_bundle
from dragoman_export.card import replace_quality

METRICS = {
    "bleu": ("BLEU", "signature"),
    "bleu_lc": ("BLEU lower-cased", "bleu_lc_signature"),
    "chrf": ("chrF", "chrf_signature"),
}
"""What `dragoman evaluate --json` prints: score -> the metric's name, and the key of its signature."""


class QualityError(ValueError):
    """Results that are not those of `dragoman evaluate --json`."""


def read_results(path: Path, *, test_set: str, precision: str) -> tuple[Quality, ...]:
    """The qualities in a file that `dragoman evaluate --json` printed. Raises QualityError or OSError."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        return tuple(
            Quality(
                test_set=test_set,
                metric=metric,
                score=float(results[score]),
                signature=str(results[signature]),
                precision=precision,
                beam_size=int(results["beam"]),
            )
            for score, (metric, signature) in METRICS.items()
        )
    except KeyError as error:
        raise QualityError(
            f"{path} has no {error}; it must hold what `dragoman evaluate --json` prints"
        ) from error
    except (TypeError, ValueError) as error:
        raise QualityError(f"{path} does not hold what `dragoman evaluate --json` prints: {error}") from error


def record_qualities(folder: Path, measured: tuple[Quality, ...]) -> None:
    """Adds the qualities to a bundle; they replace those of the same test set, metric, precision and beam.

    The bundle is replaced as a whole. Raises BundleError where it does not check out.
    """
    bundle = open_bundle(folder)
    if absent := [one.precision for one in measured if one.precision not in bundle.manifest.precisions]:
        raise BundleError(f"{folder} holds no {absent[0]} graphs: their quality can't have been measured")
    kept = [old for old in bundle.manifest.quality if not any(_is_same_measure(old, new) for new in measured)]
    # What is written has the keys of today's format.
    manifest = replace(bundle.manifest, format_version=FORMAT_VERSION, quality=(*kept, *measured))
    with staged_bundle(folder, overwrite=True) as staging:
        shutil.copytree(folder, staging, dirs_exist_ok=True)
        card = staging / CARD_FILE
        card.write_text(replace_quality(card.read_text(encoding="utf-8"), manifest.quality), encoding="utf-8")
        seal(staging, manifest)


def _is_same_measure(one: Quality, other: Quality) -> bool:
    return replace(one, score=0.0, signature="") == replace(other, score=0.0, signature="")
