"""Nothing is read of what an unknown caller sends: to decode a large message takes time and memory."""

import grpc

from dragoman_server.callers import Callers
from dragoman_server.errors import UnknownCallerError
from dragoman_server.interception import Continuation, Handler, behaviour_of, make_handler


class UnknownCallers(grpc.aio.ServerInterceptor):
    """Gives the handlers of a service None for an unknown caller's message; to refuse the call is theirs."""

    def __init__(self, callers: Callers, service: str) -> None:
        self._callers = callers
        self._prefix = f"/{service}/"

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """Wraps the handler of the call."""
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(self._prefix):
            return handler
        try:
            self._callers.identify(handler_call_details.invocation_metadata)
        except UnknownCallerError:
            return make_handler(handler, behaviour_of(handler), lambda _: None)
        return handler
