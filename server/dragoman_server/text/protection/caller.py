"""Patterns that a caller gives, in the syntax of RE2, which takes time in proportion to the text for any of
them."""

from collections.abc import Iterator

import re2

from dragoman_server.text.protection.protected import Protected, SpanKind

MAX_PATTERN_BYTES = 1 << 20
"""Most memory of a compiled pattern: repetitions of repetitions are refused."""


class PatternError(ValueError):
    """A pattern is none, or too large."""


class Pattern:
    """Finds what a pattern matches."""

    def __init__(self, pattern: str) -> None:
        """Raises PatternError."""
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_PATTERN_BYTES
        try:
            self._pattern = re2.compile(pattern, options=options)
        except re2.error as error:
            reason = error.args[0]
            raise PatternError(reason.decode() if isinstance(reason, bytes) else str(reason)) from error

    def find(self, text: str) -> Iterator[Protected]:
        """The matches that are not empty."""
        for found in self._pattern.finditer(text):
            if found.end() > found.start():
                yield Protected(span=(found.start(), found.end()), kind=SpanKind.NAMED)
