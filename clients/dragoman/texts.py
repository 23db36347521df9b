"""Checks of a text before it is sent."""

from collections.abc import Iterable, Iterator

from dragoman.arguments import invalid
from dragoman.translation import Key

MAX_REQUEST_PAIRS = 256
"""Most pairs of one request that links words."""
MAX_REQUEST_BYTES = 1 << 16
"""Most bytes of text of one such request, or of one longer pair."""
MAX_DETECTION_CHARACTERS = 1_000
"""The most characters by which a language is detected: the beginning of a text tells it."""
MAX_STREAM_TEXT_BYTES = (4 << 20) - 1024
"""Most bytes of a text of a stream: a longer one, in a message, is over the 4 MiB that gRPC servers take by
default, which would end the stream for all."""


def check_text(text: object, field: str) -> str:
    """The text, if it can travel.

    Raises TypeError for what is no string, InvalidRequestError for one with a lone surrogate.
    """
    if not isinstance(text, str):
        raise TypeError(f"{field} is {type(text).__name__}, not str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        description = f"has a lone surrogate at code point {error.start}, which UTF-8 cannot carry"
        raise invalid(field, description) from None
    return text


def check_stream_text(text: object, field: str) -> str:
    """The text, if it can travel in a stream.

    Raises TypeError for what is no string, InvalidRequestError for one with a lone surrogate or too long.
    """
    checked = check_text(text, field)
    if (size := len(checked.encode())) > MAX_STREAM_TEXT_BYTES:
        description = f"has {size} bytes; at most {MAX_STREAM_TEXT_BYTES} can travel in one message"
        raise invalid(field, description)
    return checked


def check_pair(pair: tuple[Key, str]) -> tuple[Key, str]:
    """The pair. Raises TypeError for a bare text, of which a short one would pass for a pair."""
    if isinstance(pair, str | bytes):
        raise TypeError(
            f"a stream takes pairs (id, text), not texts: write enumerate(texts); got {pair[:20]!r}"
        )
    return pair


def check_text_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Texts with their translations, each checked. Raises TypeError for what is no pair of texts."""
    checked = []
    for position, pair in enumerate(pairs):
        if isinstance(pair, str | bytes) or len(pair) != 2:
            raise TypeError(f"pairs[{position}] is no pair (text, translation): {pair!r:.40}")
        fields = f"pairs[{position}].source", f"pairs[{position}].target"
        checked.append((check_text(pair[0], fields[0]), check_text(pair[1], fields[1])))
    return checked


def text_pair_portions(pairs: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The pairs in the portions of requests: few enough, and of so many bytes or one longer pair."""
    portion: list[tuple[str, str]] = []
    num_bytes = 0
    for pair in pairs:
        size = sum(len(text.encode()) for text in pair)
        if portion and (len(portion) == MAX_REQUEST_PAIRS or num_bytes + size > MAX_REQUEST_BYTES):
            yield portion
            portion, num_bytes = [], 0
        portion.append(pair)
        num_bytes += size
    if portion:
        yield portion


def detection_portions(texts: list[str]) -> Iterator[list[str]]:
    """The texts' beginnings, by which languages are detected, in portions of requests."""
    beginnings = [text[:MAX_DETECTION_CHARACTERS] for text in texts]
    for start in range(0, len(beginnings), MAX_REQUEST_PAIRS):
        yield beginnings[start : start + MAX_REQUEST_PAIRS]


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list, each checked. Raises TypeError for one string in place of many."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a list of strings, not one string: write [{texts[:20]!r}]")
    return [check_text(text, f"texts[{position}]") for position, text in enumerate(texts)]
