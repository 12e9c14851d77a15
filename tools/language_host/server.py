"""The gRPC service LanguageRuntime, as the engine calls it."""

import contextlib
import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from tools.language_host.child_process import INTERRUPT_GRACE_SECONDS, Child
from tools.language_host.grpc_options import GRPC_OPTIONS
from tools.language_host.interpreter import Interpreter, RuntimeOptionError, interpreter_of
from tools.language_host.policy_proxy import PolicyProxy
from tools.versions import format_version, parse_version

_FOLDER = Path(__file__).parent
_ERROR_IS_SHOWN = 32
_ANALYZER = "analyzer"
_NO_DEBUGGER = "this small language host does not attach debuggers; install the official Pulumi distribution"
# Each running plugin holds a thread for its whole life; threads are only made when needed.
_MAX_CALLS = 128
_POLL_SECONDS = 0.2


def version() -> str:
    """The version of the Pulumi SDK, without a leading v."""
    return metadata.version("pulumi")


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs Python programs, policy packs and plugins for one engine."""

    def __init__(self, engine_address: str) -> None:
        self._engine_address = engine_address
        self._programs: set[Child] = set()

    def Handshake(  # noqa: N802
        self, request: language_pb2.LanguageHandshakeRequest, _context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        self._engine_address = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, _request: empty_pb2.Empty, _context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:  # noqa: N802
        return plugin_pb2.PluginInfo(version=version())

    def Run(self, request: language_pb2.RunRequest, context: grpc.ServicerContext) -> language_pb2.RunResponse:  # noqa: N802
        if request.attach_debugger:
            return language_pb2.RunResponse(error=_NO_DEBUGGER)
        interpreter = _interpreter(request.info, context)
        variables = {
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        target = [str(_FOLDER / "program.py"), *_program_arguments(request, self._engine_address)]
        child = Child(interpreter, target, request.pwd, variables)
        self._programs.add(child)
        context.add_callback(child.interrupt)
        if not context.is_active():
            child.interrupt()
        code = child.wait()
        self._programs.discard(child)
        return _run_response(code)

    def Cancel(self, _request: empty_pb2.Empty, _context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        self.interrupt()
        return empty_pb2.Empty()

    def interrupt(self) -> None:
        """Interrupt the running programs; their Run calls then end."""
        for child in tuple(self._programs):
            child.interrupt()

    def RunPlugin(  # noqa: N802
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        if request.attach_debugger:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, _NO_DEBUGGER)
        if request.kind == _ANALYZER:
            yield from _run_policy_pack(request, context)
        else:
            yield from _run_plugin(request, context)

    def GetRequiredPackages(  # noqa: N802
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        interpreter = _interpreter(request.info, context, must_exist=False)
        if not interpreter.exists:
            for line in _install(interpreter, context):
                sys.stderr.buffer.write(line)
        packages = (_package_dependency(package) for package in _packages(interpreter))
        return language_pb2.GetRequiredPackagesResponse(packages=[package for package in packages if package])

    def GetProgramDependencies(  # noqa: N802
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        packages = _packages(_interpreter(request.info, context))
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[
                language_pb2.DependencyInfo(name=package["name"], version=package["version"])
                for package in packages
                if request.transitiveDependencies or not package["is_required"]
            ]
        )

    def InstallDependencies(  # noqa: N802
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        interpreter = _interpreter(request.info, context, is_plugin=request.is_plugin, must_exist=False)
        for line in _install(interpreter, context):
            yield language_pb2.InstallDependenciesResponse(stdout=line)

    def About(self, request: language_pb2.AboutRequest, context: grpc.ServicerContext) -> language_pb2.AboutResponse:  # noqa: N802
        interpreter = _interpreter(request.info, context)
        result = subprocess.run([interpreter.python, "--version"], capture_output=True, text=True, check=False)
        python_version = parse_version(result.stdout)
        return language_pb2.AboutResponse(
            executable=interpreter.python,
            version=format_version(python_version) if python_version else "",
            metadata={"toolchain": interpreter.toolchain},
        )


def serve(engine_address: str, stop: threading.Event) -> None:
    """Print the port on standard output and serve until `stop` is set; then interrupt what runs and wait for it."""
    host = LanguageHost(engine_address)
    server = grpc.server(ThreadPoolExecutor(max_workers=_MAX_CALLS), options=GRPC_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    # A signal may reach one of gRPC's threads: Python's handler then runs only when this one looks up.
    while not stop.wait(_POLL_SECONDS):
        pass
    host.interrupt()
    # Past the grace period the calls are cancelled, which ends their children.
    server.stop(grace=INTERRUPT_GRACE_SECONDS).wait()


def _interpreter(
    info: language_pb2.ProgramInfo, context: grpc.ServicerContext, is_plugin: bool = False, must_exist: bool = True
) -> Interpreter:
    try:
        interpreter = interpreter_of(info, is_plugin)
        if must_exist:
            interpreter.check()
    except RuntimeOptionError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    return interpreter


def _program_arguments(request: language_pb2.RunRequest, engine_address: str) -> list[str]:
    flags = {
        "monitor": request.monitor_address,
        "engine": engine_address,
        "project": request.project,
        "stack": request.stack,
        "organization": request.organization,
        "root-directory": request.info.root_directory,
        "parallel": request.parallel,
    }
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    dry_run = ["--dry-run"] if request.dryRun else []
    return [*arguments, *dry_run, request.info.entry_point, *request.args]


def _run_response(code: int) -> language_pb2.RunResponse:
    if code == _ERROR_IS_SHOWN:
        return language_pb2.RunResponse(bail=True)
    if code != 0:
        return language_pb2.RunResponse(error=f"program exited with non-zero exit code: {code}")
    return language_pb2.RunResponse()


def _run_plugin(
    request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
) -> Iterator[language_pb2.RunPluginResponse]:
    """A plugin from source: a folder with a __main__.py, or else a package with a pyproject.toml."""
    folder = Path(request.info.root_directory)
    if (folder / "__main__.py").is_file():
        target = [request.info.program_directory]
    elif (folder / "pyproject.toml").is_file():
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        target = ["-m", "pulumi.run.plugin", project["project"]["name"]]
    else:
        context.abort(
            grpc.StatusCode.FAILED_PRECONDITION, f"{folder} has neither __main__.py nor pyproject.toml: cannot be run"
        )
    interpreter = _interpreter(request.info, context, is_plugin=True)
    child = Child(interpreter, [*target, *request.args], request.pwd or str(folder), _variables(request), capture=True)
    yield from _output(child, context)


def _run_policy_pack(
    request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
) -> Iterator[language_pb2.RunPluginResponse]:
    interpreter = _interpreter(request.info, context)
    folder = request.info.program_directory
    with PolicyProxy() as proxy:
        context.add_callback(lambda: proxy.fail("cancelled"))
        yield language_pb2.RunPluginResponse(stdout=b"%d\n" % proxy.port)
        variables = {**proxy.variables(), **_variables(request)}
        target = ["-m", "pulumi.policy", *request.args, folder]
        child = Child(interpreter, target, folder, variables, capture=True)
        yield from _output(child, context, proxy.attach)


def _output(
    child: Child, context: grpc.ServicerContext, take_port: Callable[[bytes], None] | None = None
) -> Iterator[language_pb2.RunPluginResponse]:
    """A plugin's output and exit code; it ends with the call. `take_port` gets the first line of standard output."""
    context.add_callback(child.kill)
    if not context.is_active():
        child.kill()
    try:
        for stream, line in child.output():
            if stream == "stderr":
                yield language_pb2.RunPluginResponse(stderr=line)
            elif take_port:
                take_port(line)
                take_port = None
            else:
                yield language_pb2.RunPluginResponse(stdout=line)
    finally:
        child.kill()
        code = child.wait()
    if code != 0:
        yield language_pb2.RunPluginResponse(exitcode=code)


def _variables(request: language_pb2.RunPluginRequest) -> dict[str, str]:
    return dict(variable.split("=", 1) for variable in request.env)


def _install(interpreter: Interpreter, context: grpc.ServicerContext) -> Iterator[bytes]:
    try:
        yield from interpreter.install()
    except (OSError, subprocess.CalledProcessError) as error:
        context.abort(grpc.StatusCode.INTERNAL, f"installing dependencies failed: {error}")


def _packages(interpreter: Interpreter) -> list[dict[str, Any]]:
    result = subprocess.run(
        [interpreter.python, str(_FOLDER / "packages.py")],
        cwd=interpreter.program_directory,
        env=interpreter.environment(),
        capture_output=True,
        check=True,
    )
    packages: list[dict[str, Any]] = json.loads(result.stdout)
    return packages


def _package_dependency(package: dict[str, Any]) -> plugin_pb2.PackageDependency | None:
    plugin = package["plugin"]
    if not plugin or not plugin.get("resource"):
        return None
    plugin_version = plugin.get("version") or package["version"]
    dependency = plugin_pb2.PackageDependency(
        name=plugin.get("name") or package["name"].removeprefix("pulumi-"),
        version=f"v{plugin_version.removeprefix('v')}",
        kind="resource",
        server=plugin.get("server") or "",
    )
    with contextlib.suppress(KeyError):
        parameter = plugin["parameterization"]
        dependency.parameterization.name = parameter["name"]
        dependency.parameterization.version = parameter["version"]
        dependency.parameterization.value = parameter["value"].encode()
    return dependency
