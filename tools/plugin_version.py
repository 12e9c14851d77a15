"""The version of a Pulumi resource plugin, which only its gRPC service tells."""

import subprocess
from pathlib import Path

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2_grpc

_CALL_SECONDS = 30


def plugin_version(executable: Path) -> str:
    """Start the plugin without an engine, ask it, and end it. The empty string when it does not answer.

    Raises:
        OSError: it cannot be started.
    """
    with subprocess.Popen(
        [executable], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            return _ask(port) if port.isdigit() else ""
        finally:
            process.kill()


def _ask(port: str) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            info = provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(
                empty_pb2.Empty(), timeout=_CALL_SECONDS
            )
        except grpc.RpcError:
            return ""
        return str(info.version)
