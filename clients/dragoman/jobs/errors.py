"""The errors of a job, apart from the server's."""

from collections.abc import Iterator
from contextlib import contextmanager

from dragoman_files.errors import FileError


class JobError(ValueError):
    """The job cannot start or go on as it was asked for; the message says what to do."""


@contextmanager
def of_the_job() -> Iterator[None]:
    """Makes the error of a file one of the job that reads or writes it."""
    try:
        yield
    except FileError as error:
        raise JobError(str(error)) from error
