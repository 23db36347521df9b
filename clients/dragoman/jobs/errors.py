"""The errors of a job, apart from the server's."""


class JobError(ValueError):
    """The job cannot start or go on as it was asked for; the message says what to do."""


class UnitError(ValueError):
    """A unit of the input holds no text to translate, or can't hold its translation. The job goes on."""
