"""grpc.health.v1 as a service: tells who asks, and those who watch whenever it changes.

Unlike grpc's own it waits for no watcher: one who does not read would hold up every change, and the drain.
"""

import asyncio

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman_server.interception import Context
from dragoman_server.occupancy import Occupancy

MAX_WATCHES = 1000
"""Most Watch calls at a time: nobody needs a token for one."""
MAX_WRITE_SECONDS = 300.0
"""How long one may take to read a status before its place is another's."""


class HealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Knows the statuses it was told. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._statuses: dict[str, health_pb2.HealthCheckResponse.ServingStatus] = {}
        self._watches = Occupancy()
        # Set, and replaced by another, at every change.
        self._changed = asyncio.Event()

    def tell(self, service: str, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        """From now on that is the service's status."""
        self._statuses[service] = status
        self._changed.set()
        self._changed = asyncio.Event()

    def tell_all(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        """From now on that is the status of every service there is."""
        for service in self._statuses:
            self.tell(service, status)

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        """The status; NOT_FOUND for a service that there is not."""
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    # grpc.aio takes a coroutine that writes as well as an iterator.
    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Context) -> None:
        """The status, and again when it has changed. A slow reader misses what changed back meanwhile."""
        if self._watches.num_inside >= MAX_WATCHES:
            description = f"the health of the server is watched by {MAX_WATCHES} calls, as many as it lets"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, description)
        told = None
        with self._watches.inside():
            while True:
                changed = self._changed
                status = self._statuses.get(request.service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
                if status != told:
                    try:
                        async with asyncio.timeout(MAX_WRITE_SECONDS):
                            await context.write(health_pb2.HealthCheckResponse(status=status))
                    except (TimeoutError, grpc.aio.InternalError):
                        # The reader takes nothing, or has just gone away.
                        return
                    told = status
                await changed.wait()
