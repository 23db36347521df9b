"""The bundles that come with the project, whatever their version is."""

import re
from pathlib import Path

HOUSE = Path(__file__).parents[1]


def shipped_bundle(direction: str) -> Path:
    """The folder of the shipped bundle of `direction`, such as "de-en": the one that git does not ignore."""
    ignored = (HOUSE / ".gitignore").read_text()
    (version,) = re.findall(rf"^!/models/{direction}/(\d+)/$", ignored, re.MULTILINE)
    return HOUSE / "models" / direction / version
