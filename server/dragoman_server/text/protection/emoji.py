"""Emoji with everything that belongs to them: joiners, skin tones, variation selectors, tags, flags, keycaps.

After the grammar of UTS 51, which takes in sequences that nobody draws, too.
"""

import re

_PICTOGRAPH = (
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    r"\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_ELEMENT = rf"{_PICTOGRAPH}[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*+[\U000e0020-\U000e007f]*+"
EMOJI = (
    rf"(?:{_ELEMENT}(?:\u200d{_ELEMENT})*+|[\U0001f1e6-\U0001f1ff]{{1,2}}|[0-9#*]\ufe0f?\u20e3"
    r"|[\U0001f3fb-\U0001f3ff])++"
)
"""A run of emoji, as a pattern of `re`."""

_EMOJI = re.compile(EMOJI)


def is_emoji(text: str) -> bool:
    """Whether it is emoji and nothing else."""
    return _EMOJI.fullmatch(text) is not None
