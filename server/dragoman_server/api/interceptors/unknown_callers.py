"""Nothing is read of what an unknown caller sends: a large message takes memory, and time to decode."""

import grpc

from dragoman_server.api.interceptors.interception import Continuation, Handler, behaviour_of
from dragoman_server.errors import UnknownCallerError
from dragoman_server.service.callers import Callers


class UnknownCallers(grpc.aio.ServerInterceptor):
    """Gives the handlers of a service an unknown caller's messages unread; to refuse the call is theirs."""

    def __init__(self, callers: Callers, service: str) -> None:
        self._callers = callers
        self._prefix = f"/{service}/"

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """Wraps the handler of the call."""
        handler = await continuation(handler_call_details)
        is_asked = self._callers.are_asked and handler_call_details.method.startswith(self._prefix)
        if handler is None or not is_asked:
            return handler
        try:
            self._callers.identify(handler_call_details.invocation_metadata)
        except UnknownCallerError:
            # A unary call's handler would begin once all of its message is there, which may be never.
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.response_streaming
                else grpc.stream_unary_rpc_method_handler
            )
            return make(behaviour_of(handler), None, handler.response_serializer)
        return handler
