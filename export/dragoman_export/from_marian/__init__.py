"""Models of Marian's own formats, `.npz` and Firefox's `.bin`, as what is exported."""

from dragoman_export.from_marian.errors import MarianFileError
from dragoman_export.from_marian.load import import_marian

__all__ = ["MarianFileError", "import_marian"]
