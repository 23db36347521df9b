"""The trace that a call belongs to, where the calling program has one by OpenTelemetry."""

import sys

Metadata = tuple[tuple[str, str], ...] | None
"""The metadata of a call."""


def traced(metadata: Metadata) -> Metadata:
    """The metadata with the current span as `traceparent`; as they are in a program that traces nothing."""
    if "opentelemetry.trace" not in sys.modules:
        return metadata
    # Loaded here: a program that traces nothing may not have it.
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return (*(metadata or ()), *((key.lower(), value) for key, value in carrier.items())) or None
