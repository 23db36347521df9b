"""The log: one line per event on standard error, as JSON for machines or as text for people."""

import logging

from pythonjsonlogger.json import JsonFormatter

from dragoman_server.config import LogFormat

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class TextFormatter(logging.Formatter):
    """Time, level, message and the event's fields as key=value."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line, without the trace of an exception."""
        fields = [f"{key}={value}" for key, value in vars(record).items() if key not in _STANDARD]
        return " ".join([super().formatMessage(record), *fields])


def configure_logging(log_format: LogFormat) -> None:
    """Sets up the root logger."""
    logging.getLogger("grpc._cython.cygrpc").addFilter(_shows_no_metadata)
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(
            "%(levelname)s %(name)s %(message)s",
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp=True,
        )
        if log_format == "json"
        else TextFormatter()
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _shows_no_metadata(record: logging.LogRecord) -> bool:
    """Whether a line of grpc's own is without what a caller sent.

    Metadata that are not text it writes down whole, and a token may be among them.
    """
    return not record.getMessage().startswith("Invalid encoding on")
