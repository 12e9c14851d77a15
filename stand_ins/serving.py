"""The process that the engine starts as a plugin: it prints its port and serves until it is ended."""

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from tools.language_host.grpc_options import GRPC_OPTIONS
from tools.language_host.parent_process import call_when_parent_ends

_MAX_CALLS = 16


def serve(provider: provider_pb2_grpc.ResourceProviderServicer) -> None:
    """Serve one plugin; returns when the engine interrupts it or is gone."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    call_when_parent_ends(stop.set)
    server, port = start(provider)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    stop.wait()
    server.stop(grace=None).wait()


def start(provider: provider_pb2_grpc.ResourceProviderServicer) -> tuple[grpc.Server, int]:
    """A running server and its port."""
    server = grpc.server(ThreadPoolExecutor(_MAX_CALLS), options=GRPC_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port
