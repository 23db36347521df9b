"""What can be wrong with a job, apart from the server."""


class JobError(ValueError):
    """The job cannot start or go on as it was asked for; the message says what to do."""


class LineError(ValueError):
    """A line of the input holds no text to translate. The job goes on without it."""
