"""The errors of files and of their texts."""


class FileError(ValueError):
    """The file can't be read or written as it was asked for; the message says what to do."""


class UnitError(ValueError):
    """A unit of a file holds no text to translate, or can't hold its translation. The others can."""
