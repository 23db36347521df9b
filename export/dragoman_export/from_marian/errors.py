"""Why a model of Marian's can't be brought here."""


class MarianFileError(ValueError):
    """A file that is none of Marian's, is not whole, or a model that has what is not known here."""
