"""The errors of a job, apart from the server's."""


class JobError(ValueError):
    """The job cannot start or go on as it was asked for; the message says what to do."""


class MissingLibraryError(JobError):
    """A format needs a library that is not installed."""

    def __init__(self, feature: str, library: str) -> None:
        super().__init__(
            f"{feature} needs {library}, which is not installed: `pip install {library}` adds it, and the "
            "extra `formats` of dragoman all that formats need"
        )
        self.feature = feature
        """The feature that needs it."""
        self.library = library
        """By the name that `pip install` takes."""


class UnitError(ValueError):
    """A unit of the input holds no text to translate, or can't hold its translation. The job goes on."""
