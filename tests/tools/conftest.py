"""A stand-in for the Pulumi engine, and a language host started against it."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    language_pb2,
    language_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
)

from tools.toolchain import LANGUAGE_HOST

STOP_SECONDS = 20


class StandInEngine(engine_pb2_grpc.EngineServicer, resource_pb2_grpc.ResourceMonitorServicer):
    """A stand-in: it records error messages and stack outputs, and agrees to every resource."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.outputs: dict[str, object] = {}

    def Log(self, request: engine_pb2.LogRequest, _context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        if request.severity == engine_pb2.ERROR:
            self.errors.append(request.message)
        return empty_pb2.Empty()

    def SupportsFeature(  # noqa: N802
        self, _request: resource_pb2.SupportsFeatureRequest, _context: grpc.ServicerContext
    ) -> resource_pb2.SupportsFeatureResponse:
        return resource_pb2.SupportsFeatureResponse(hasSupport=False)

    def RegisterResource(  # noqa: N802
        self, request: resource_pb2.RegisterResourceRequest, _context: grpc.ServicerContext
    ) -> resource_pb2.RegisterResourceResponse:
        return resource_pb2.RegisterResourceResponse(urn=f"urn:pulumi:test::tiny::{request.type}::{request.name}")

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest, _context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        self.outputs.update(request.outputs.items())
        return empty_pb2.Empty()


class RunningHost:
    """A language host process, the engine that it talks to and a project folder for it to run."""

    def __init__(self, project: Path, engine: StandInEngine, engine_address: str) -> None:
        self.project = project
        self.engine = engine
        self.engine_address = engine_address
        self.process = subprocess.Popen(
            [LANGUAGE_HOST, engine_address],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": "/usr/bin:/bin", "PULUMI_PYTHON_CMD": sys.executable},
        )
        self.address = f"127.0.0.1:{self.line().strip()}"
        self.channel = grpc.insecure_channel(self.address)
        self.stub = language_pb2_grpc.LanguageRuntimeStub(self.channel)

    def line(self) -> str:
        """The next line that the host or its program writes; the test's own timeout bounds the wait."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def info(self, **options: str) -> language_pb2.ProgramInfo:
        info = language_pb2.ProgramInfo(
            root_directory=str(self.project), program_directory=str(self.project), entry_point="."
        )
        info.options.update(options)
        return info

    def run_request(self, program: str, config: dict[str, str] | None = None) -> language_pb2.RunRequest:
        """The request to run `program`, which becomes the project's __main__.py."""
        (self.project / "__main__.py").write_text(program, encoding="utf-8")
        return language_pb2.RunRequest(
            project="tiny",
            stack="test",
            pwd=str(self.project),
            program=".",
            config=config or {},
            dryRun=True,
            parallel=4,
            monitor_address=self.engine_address,
            organization="organization",
            info=self.info(),
        )

    def run(self, program: str, config: dict[str, str] | None = None) -> language_pb2.RunResponse:
        response: language_pb2.RunResponse = self.stub.Run(self.run_request(program, config))
        return response

    def close(self) -> None:
        self.channel.close()
        self.process.terminate()
        self.process.wait(STOP_SECONDS)
        if self.process.stdout:
            self.process.stdout.close()


@pytest.fixture
def engine() -> Iterator[tuple[StandInEngine, str]]:
    """The stand-in engine and its address."""
    engine = StandInEngine()
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield engine, f"127.0.0.1:{port}"
    server.stop(grace=None).wait()


@pytest.fixture
def host(engine: tuple[StandInEngine, str], tmp_path: Path) -> Iterator[RunningHost]:
    project = tmp_path / "project"
    project.mkdir()
    running = RunningHost(project, *engine)
    yield running
    running.close()
