"""Batch translation of whole files: ordered, resumable, with progress."""

from dragoman.jobs.errors import JobError
from dragoman.jobs.file_job import FileJob, Observer, Summary

__all__ = ["FileJob", "JobError", "Observer", "Summary"]
