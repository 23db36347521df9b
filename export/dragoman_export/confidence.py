"""The confidence of a new bundle, fitted to its translations of its recipe's validation set.

What serves a bundle translates it; export knows that by its name among the entry points alone.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from dragoman_bundle.bundle import Bundle, open_bundle

from dragoman_training.checkpoint import Checkpoint
from dragoman_training.data.training_corpus import read_validation_pairs

MAX_PAIRS = 500


def calibrated(
    bundle: Bundle, checkpoint: Checkpoint, folder: Path | None, report: Callable[[str], None]
) -> Bundle:
    """The bundle with a confidence, or as it is where it can't have one, which is reported.

    The recipe's relative paths start at `folder`, or where they did in training.
    """
    if not checkpoint.recipe.data.has_source:
        return bundle
    (entry_point,) = entry_points(group="dragoman.systems", name="bundle")
    try:
        pairs = read_validation_pairs(checkpoint, folder, max_pairs=MAX_PAIRS)
        report(f"fitting the confidence to {len(pairs)} validation pairs")
        with entry_point.load()(
            str(bundle.path),
            source_language=None,
            target_language=None,
            beam_size=bundle.manifest.decoding.beam_size,
            device="cpu",
            precision="auto",
        ) as system:
            system.calibrate(pairs.sources, pairs.targets)
    except (ValueError, ModuleNotFoundError) as error:
        report(f"no confidence: {error}; `dragoman evaluate --calibrate` fits one to other text")
    return open_bundle(bundle.path)
