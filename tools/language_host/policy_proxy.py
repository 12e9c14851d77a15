"""Stands between the engine and a Python policy pack while the pack starts.

The engine sends a pack its stack's configuration over gRPC. Packs read it from the environment, as they always did: so
the pack can only be started after that call, and something has to answer before. Afterwards every call is passed on.
"""

import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Self

import grpc
from pulumi.runtime.proto import analyzer_pb2

from tools.language_host.grpc_options import GRPC_OPTIONS

_SERVICE = "/pulumirpc.Analyzer/"
_CONFIGURE = f"{_SERVICE}ConfigureStack"
_EMPTY_MESSAGE = b""
# Open calls end by themselves as soon as the pack has ended; this bounds the wait for them.
_GRACE_SECONDS = 5.0


class PolicyProxy(grpc.GenericRpcHandler):
    """A context manager: serves on `port` from the beginning to the end of the block."""

    def __init__(self) -> None:
        self._configuration: Future[bytes | None] = Future()
        self._pack: Future[grpc.Channel] = Future()
        self._server = grpc.server(ThreadPoolExecutor(), handlers=[self], options=GRPC_OPTIONS)
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.fail("the policy pack has ended")
        # Whoever waited for the pack still gets the reason; without a grace, the calls would only be cut off.
        self._server.stop(grace=_GRACE_SECONDS).wait()
        if self._pack.exception() is None:
            self._pack.result().close()

    def variables(self) -> dict[str, str]:
        """Waits for the engine to say, or to do without saying, what stack the pack judges: the pack's environment."""
        configuration = self._configuration.result()
        if configuration is None:
            return {}
        request = analyzer_pb2.AnalyzerStackConfigureRequest.FromString(configuration)
        variables = {
            "PULUMI_ORGANIZATION": request.organization,
            "PULUMI_PROJECT": request.project,
            "PULUMI_STACK": request.stack,
            "PULUMI_DRY_RUN": str(request.dry_run).lower(),
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
        }
        return {name: value for name, value in variables.items() if value}

    def attach(self, port_line: bytes) -> None:
        """Pass calls on to the pack that printed this line, beginning with the configuration that it has missed."""
        if not port_line.strip().isdigit():
            self.fail(f"it printed {port_line!r} before its port; a pack must not print before PolicyPack()")
            return
        channel = grpc.insecure_channel(f"127.0.0.1:{int(port_line)}", options=GRPC_OPTIONS)
        configuration = self._configuration.result()
        if configuration is not None:
            # A pack of an older SDK does not know the call.
            with contextlib.suppress(grpc.RpcError):
                _call(channel, _CONFIGURE, configuration)
        with contextlib.suppress(InvalidStateError):
            self._pack.set_result(channel)

    def fail(self, reason: str) -> None:
        """Nobody has to wait any longer."""
        _settle(self._configuration, None)
        with contextlib.suppress(InvalidStateError):
            self._pack.set_exception(ConnectionError(reason))

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        """The handler of a call, in bytes: the messages are not this proxy's business."""
        method = handler_call_details.method
        if not method.startswith(_SERVICE):
            return None
        own: dict[str, Callable[[bytes, grpc.ServicerContext], bytes]] = {
            f"{_SERVICE}Handshake": lambda _request, _context: _EMPTY_MESSAGE,
            _CONFIGURE: self._configure,
        }
        handler = own.get(method, partial(self._forward, method))
        return grpc.unary_unary_rpc_method_handler(handler, _unchanged, _unchanged)

    def _configure(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        _settle(self._configuration, request)
        return _EMPTY_MESSAGE

    def _forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        # Any other call first means that there is no stack, as in `pulumi policy publish`.
        _settle(self._configuration, None)
        try:
            return _call(self._pack.result(), method, request)
        except ConnectionError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, f"policy pack not started: {error}")
        except grpc.RpcError as error:
            context.abort(error.code(), error.details() or "")


def _call(channel: grpc.Channel, method: str, request: bytes) -> bytes:
    return channel.unary_unary(method, _unchanged, _unchanged)(request)


def _unchanged(message: bytes) -> bytes:
    return message


_settling = threading.Lock()


def _settle(future: "Future[bytes | None]", value: bytes | None) -> None:
    with _settling:
        if not future.done():
            future.set_result(value)
