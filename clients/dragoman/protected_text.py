"""A text with parts of its own that stay as they are."""

from collections.abc import Iterable
from typing import Self

from dragoman.arguments import invalid
from dragoman_files.errors import UnitError
from dragoman_files.ranges import RangedText


class ProtectedText(RangedText):
    """A text, for any call that takes texts, with ranges of it that are not translated.

    ProtectedText("Herr Grün mag grün.", [(5, 9)])
    """

    __slots__ = ()

    def __new__(cls, text: str, protected_ranges: Iterable[tuple[int, int]]) -> Self:
        """Raises TypeError for what is no range, InvalidRequestError for one that is not in the text."""
        try:
            return super().__new__(cls, text, protected_ranges)
        except UnitError as error:
            raise invalid("protected_ranges", str(error).removeprefix("protected_ranges ")) from None
