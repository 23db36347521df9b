"""The process's file descriptors: without one nobody can connect, and neither can who reads the metrics."""

import resource

_MAX_RESERVED = 256


def raise_limit() -> None:
    """Takes as many as the system lets this process have, which is often far more than it starts with."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def room_for_connections(wanted: int, *, others: int = 0) -> int:
    """The number of connections, up to `wanted`, that leaves descriptors for files, engines, the metrics
    and `others`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, soft - min(soft // 2, _MAX_RESERVED + others))
