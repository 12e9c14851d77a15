"""The pack as the engine sees it: a process that answers by gRPC."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

ROOT = Path(__file__).parents[2]
# Nothing listens there; the pack connects to its engine only to log.
NO_ENGINE = "127.0.0.1:1"


def struct(props: dict[str, Any]) -> struct_pb2.Struct:
    """Properties as the protocol carries them."""
    return json_format.ParseDict(props, struct_pb2.Struct())


@dataclass(frozen=True)
class Pack:
    """A running pack."""

    stub: analyzer_pb2_grpc.AnalyzerStub
    process: subprocess.Popen[str]

    def cpu_seconds(self) -> float:
        """Processor time used so far. Unlike time on the clock it does not depend on what else the machine does."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        # https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: utime and stime, counted after the name.
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def info(self) -> analyzer_pb2.AnalyzerInfo:
        """What the pack says of itself."""
        info: analyzer_pb2.AnalyzerInfo = self.stub.GetAnalyzerInfo(empty_pb2.Empty())
        return info

    def configure(self, config: Mapping[str, analyzer_pb2.PolicyConfig]) -> None:
        """Set the configuration, complete, as the engine does."""
        self.stub.Configure(analyzer_pb2.ConfigureAnalyzerRequest(policyConfig=config))

    def analyze(self, request: analyzer_pb2.AnalyzeRequest) -> list[analyzer_pb2.AnalyzeDiagnostic]:
        """The verdict on one resource."""
        return list(self.stub.Analyze(request).diagnostics)

    def analyze_stack(self, resources: list[analyzer_pb2.AnalyzerResource]) -> list[analyzer_pb2.AnalyzeDiagnostic]:
        """The verdict on a stack."""
        return list(self.stub.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=resources)).diagnostics)


@pytest.fixture
def start_pack() -> Iterator[Callable[..., Pack]]:
    """Starts packs, in whatever working directory and environment, and ends those that it started."""
    started: list[tuple[subprocess.Popen[str], grpc.Channel]] = []

    def start(
        pack: str = str(ROOT / "policy"), directory: Path = ROOT, environment: Mapping[str, str] | None = None
    ) -> Pack:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "pulumi.policy", NO_ENGINE, pack],
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        started.append((process, channel))
        return Pack(analyzer_pb2_grpc.AnalyzerStub(channel), process)

    yield start
    for process, channel in started:
        channel.close()
        process.terminate()
        process.communicate(timeout=10)
