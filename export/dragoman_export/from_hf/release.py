"""What a release of OPUS-MT tells of itself beside its weights and tokenizer: its languages and its licence.

Which files a release has depends on its year. Those of the first have a tokenizer_config.json of their own,
those of the Tatoeba challenge a metadata.json too, and those for Marian itself neither.
"""

import re
from collections.abc import Mapping
from typing import Any

from dragoman_export.from_hf.errors import CheckpointError

METADATA_FILE = "metadata.json"
_METADATA_KEYS = {
    "source": ("src_alpha2", "source_languages", "src_alpha3"),
    "target": ("tgt_alpha2", "target_languages", "tgt_alpha3"),
}
_ONE_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")


def find_language(
    name: str, *, tokenizer_config: Mapping[str, Any], metadata: Mapping[str, Any], side: str
) -> str:
    """The language of "source" or "target". Raises CheckpointError where no file names one.

    The tokenizer's own word goes first. Of metadata.json a list of several languages is none.
    """
    named = [tokenizer_config.get(f"{side}_lang"), *(metadata.get(key) for key in _METADATA_KEYS[side])]
    if isinstance(named[0], str) and named[0]:
        return named[0]
    for language in named[1:]:
        if isinstance(language, str) and _ONE_LANGUAGE.fullmatch(language):
            return language
    raise CheckpointError(
        f"{name}: neither tokenizer_config.json nor {METADATA_FILE} names one {side} language; give it with "
        f"--{side}-language"
    )


def find_licence(card: str) -> str:
    """What the model card's head says of its licence."""
    found = re.search(r"^license:\s*(\S.*)$", card, re.MULTILINE)
    return found[1].strip() if found else ""
