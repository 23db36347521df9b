"""Batch translation of whole files: ordered, resumable, with progress."""

from dragoman.jobs.file_job import FileJob, Observer, Summary
from dragoman.jobs.units import JobError
from dragoman_files.format import FormatOptions

__all__ = ["FileJob", "FormatOptions", "JobError", "Observer", "Summary"]
