"""The language host as a process, driven over gRPC by a stand-in engine."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, language_pb2

from tests.processes import is_running, wait_until
from tests.tools.conftest import RunningHost
from tools.toolchain import LANGUAGE_HOST

pytestmark = pytest.mark.timeout(60)

SLEEPING_PROGRAM = """
import os, subprocess, sys, time
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), grandchild.pid, flush=True)
time.sleep(600)
"""

# Interrupts are ignored, as a program stuck in a C library would.
STUBBORN_PROGRAM = SLEEPING_PROGRAM.replace(
    "grandchild =", "import signal; signal.signal(2, signal.SIG_IGN)\ngrandchild ="
)

POLICY_PACK = """
import os, sys
import pulumi
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def validate(args, report):
    report(f"{pulumi.get_stack()} {pulumi.Config('tiny').get('colour')} {os.path.basename(os.getcwd())}")

PolicyPack("stand-in", policies=[ResourceValidationPolicy(
    name="always", description="always", validate=validate, enforcement_level=EnforcementLevel.MANDATORY)])
"""


def start_sleeping(host: RunningHost, program: str = SLEEPING_PROGRAM) -> tuple[Any, list[int]]:
    """Start a program that sleeps; returns the Run call and the process ids of program and grandchild."""
    call = host.stub.Run.future(host.run_request(program))
    return call, [int(word) for word in host.line().split()]


def test_a_program_sees_its_stack_and_config_and_exports_outputs(host: RunningHost) -> None:
    program = """
import pulumi, sys
config = pulumi.Config()
pulumi.export("seen", [pulumi.get_project(), pulumi.get_stack(), config.get("colour"), pulumi.runtime.is_dry_run()])
pulumi.export("path", list(sys.path))
"""
    response = host.run(program, {"tiny:colour": "green"})
    assert response == language_pb2.RunResponse()
    assert list(host.engine.outputs["seen"]) == ["tiny", "test", "green", True]  # type: ignore[call-overload]
    path = list(host.engine.outputs["path"])  # type: ignore[call-overload]
    assert path[0] == "."
    assert str(LANGUAGE_HOST.parent.parent) not in path


def test_an_exception_shows_the_users_lines_only_and_bails(host: RunningHost) -> None:
    response = host.run("def fail():\n    raise ValueError('boom')\n\nfail()\n")
    assert response == language_pb2.RunResponse(bail=True)
    (message,) = host.engine.errors
    assert message.startswith("Program failed with an unhandled exception:\nTraceback")
    assert f'File "{host.project}/__main__.py", line 2, in fail' in message
    assert "ValueError: boom" in message
    assert "runpy" not in message
    assert "language_host" not in message


def test_a_syntax_error_is_shown_with_its_file(host: RunningHost) -> None:
    response = host.run("def broken(:\n")
    assert response.bail
    assert "__main__.py" in host.engine.errors[0]
    assert "SyntaxError" in host.engine.errors[0]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        pytest.param("raise SystemExit(3)", 3, id="exit code of the program"),
        pytest.param("import pulumi\nraise pulumi.RunError('no good')", 1, id="RunError"),
        pytest.param("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", -1, id="killed by a signal"),
    ],
)
def test_a_non_zero_exit_gives_the_official_message(host: RunningHost, program: str, code: int) -> None:
    assert host.run(program).error == f"program exited with non-zero exit code: {code}"


def test_a_run_error_is_shown_without_traceback(host: RunningHost) -> None:
    host.run("import pulumi\nraise pulumi.RunError('no good')")
    assert host.engine.errors == ["no good"]


def test_a_missing_program_is_named(host: RunningHost) -> None:
    request = host.run_request("")
    (host.project / "__main__.py").unlink()
    assert host.stub.Run(request).bail
    assert host.engine.errors == [f"unable to find main python program `__main__.py` in `{host.project}`"]


def test_both_output_streams_arrive_in_the_order_of_writing(host: RunningHost) -> None:
    host.run("import sys\nfor i in range(50):\n    print(i, file=(sys.stdout, sys.stderr)[i % 2])\n")
    assert [host.line().strip() for _ in range(50)] == [str(i) for i in range(50)]


def test_output_arrives_while_the_program_runs(host: RunningHost) -> None:
    call, _pids = start_sleeping(host)
    assert not call.done()
    call.cancel()


@pytest.mark.parametrize("program", [SLEEPING_PROGRAM, STUBBORN_PROGRAM], ids=["interruptible", "stubborn"])
def test_interrupting_the_host_ends_the_program_and_what_it_started(host: RunningHost, program: str) -> None:
    _call, pids = start_sleeping(host, program)
    host.process.send_signal(signal.SIGINT)
    host.process.wait(10)
    assert wait_until(lambda: not any(map(is_running, pids)), 2)


def test_the_program_gets_the_interrupt_and_can_clean_up(host: RunningHost) -> None:
    program = "import time\ntry:\n    print('ready')\n    time.sleep(600)\nfinally:\n    print('cleaned up')\n"
    _call = host.stub.Run.future(host.run_request(program))
    assert host.line() == "ready\n"
    host.process.send_signal(signal.SIGINT)
    assert host.line() == "cleaned up\n"


def test_an_interrupt_before_the_program_begins_leaves_no_traceback_of_imports(tmp_path: Path) -> None:
    (tmp_path / "pulumi.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(600)\n")
    program = LANGUAGE_HOST.parent.parent / "program.py"
    with subprocess.Popen(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (-signal.SIGINT, "")


def test_cancelling_the_call_ends_the_program_but_not_the_host(host: RunningHost) -> None:
    call, pids = start_sleeping(host)
    call.cancel()
    assert wait_until(lambda: not any(map(is_running, pids)), 5)
    assert host.stub.GetPluginInfo(empty_pb2.Empty()).version


def test_the_cancel_call_ends_the_program(host: RunningHost) -> None:
    call, pids = start_sleeping(host)
    host.stub.Cancel(empty_pb2.Empty())
    assert "non-zero exit code: -1" in call.result(5).error
    assert not any(map(is_running, pids))


def test_killing_the_host_leaves_no_orphans(host: RunningHost) -> None:
    _call, pids = start_sleeping(host)
    host.process.kill()
    assert wait_until(lambda: not any(map(is_running, pids)), 5)


def test_what_a_finished_program_left_running_is_ended(host: RunningHost) -> None:
    host.run("import subprocess\nprint(subprocess.Popen(['sleep', '600']).pid)")
    pid = int(host.line())
    assert wait_until(lambda: not is_running(pid), 2)


def test_the_host_ends_when_its_parent_is_killed(engine: tuple[object, str]) -> None:
    starter = f"""
import subprocess, time
host = subprocess.Popen([{str(LANGUAGE_HOST)!r}, {engine[1]!r}], stdout=subprocess.PIPE)
host.stdout.readline()
print(host.pid, flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "PULUMI_PYTHON_CMD": sys.executable}
    with subprocess.Popen(
        [sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        host_pid = int(parent.stdout.readline())
        parent.kill()
    assert wait_until(lambda: not is_running(host_pid), 5)


def test_a_policy_pack_is_served_through_the_host_with_its_stacks_config(host: RunningHost) -> None:
    (host.project / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (host.project / "__main__.py").write_text(POLICY_PACK)
    call = host.stub.RunPlugin(
        language_pb2.RunPluginRequest(
            pwd=str(host.project),
            args=[host.engine_address],
            kind="analyzer",
            info=host.info(),
            env=[f"PATH={os.environ['PATH']}"],
        )
    )
    port = next(call).stdout.decode().strip()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        analyzer = analyzer_pb2_grpc.AnalyzerStub(channel)
        analyzer.ConfigureStack(
            analyzer_pb2.AnalyzerStackConfigureRequest(
                stack="test", project="tiny", organization="organization", config={"tiny:colour": "green"}
            )
        )
        assert analyzer.GetAnalyzerInfo(empty_pb2.Empty()).name == "stand-in"
        request = analyzer_pb2.AnalyzeRequest(type="a:b:C", urn="urn:pulumi:test::tiny::a:b:C::name", name="name")
        request.properties.update({"large": "x" * 5_000_000})
        (diagnostic,) = analyzer.Analyze(request).diagnostics
    assert f"test green {host.project.name}" in diagnostic.message
    call.cancel()
    assert wait_until(lambda: not _children(host.process.pid), 5)


def test_a_policy_pack_that_cannot_start_says_why(host: RunningHost) -> None:
    (host.project / "__main__.py").write_text("raise ValueError('boom')\n")
    call = host.stub.RunPlugin(
        language_pb2.RunPluginRequest(args=[host.engine_address], kind="analyzer", info=host.info(), env=[])
    )
    port = next(call).stdout.decode().strip()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, pytest.raises(grpc.RpcError, match="policy pack not"):
        analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(empty_pb2.Empty(), timeout=20)
    responses = list(call)
    assert responses[-1].exitcode == 1


def test_a_plugin_from_source_runs_and_its_exit_code_is_passed_on(host: RunningHost) -> None:
    (host.project / "__main__.py").write_text(
        "import sys\nprint(sys.argv[1:])\nprint('oops', file=sys.stderr)\nsys.exit(7)\n"
    )
    request = language_pb2.RunPluginRequest(pwd=str(host.project), args=["a", "b"], kind="resource", info=host.info())
    responses = list(host.stub.RunPlugin(request))
    assert b"".join(response.stdout for response in responses) == b"['a', 'b']\n"
    assert b"".join(response.stderr for response in responses) == b"oops\n"
    assert responses[-1].exitcode == 7


def test_required_packages_come_from_the_installed_plugin_files(host: RunningHost) -> None:
    response = host.stub.GetRequiredPackages(language_pb2.GetRequiredPackagesRequest(info=host.info()))
    packages = {package.name: package for package in response.packages}
    assert packages["kubernetes"].version.startswith("v4.")
    assert packages["kubernetes"].kind == "resource"
    assert not {"policy", "pulumi"} & packages.keys()


def test_direct_dependencies_leave_out_what_others_need(host: RunningHost) -> None:
    def names(transitive: bool) -> set[str]:
        request = language_pb2.GetProgramDependenciesRequest(info=host.info(), transitiveDependencies=transitive)
        return {dependency.name for dependency in host.stub.GetProgramDependencies(request).dependencies}

    assert {"pulumi-policy", "grpcio"} <= names(transitive=True)
    assert "grpcio" not in names(transitive=False)
    assert "pulumi-policy" in names(transitive=False)


def test_the_virtualenv_option_is_relative_to_the_project_and_made_by_install(host: RunningHost) -> None:
    info = host.info(virtualenv="my-venv")
    with pytest.raises(
        grpc.RpcError, match=r"virtualenv: .*/my-venv is not a virtual environment; run `pulumi install`"
    ):
        host.stub.About(language_pb2.AboutRequest(info=info))
    lines = list(host.stub.InstallDependencies(language_pb2.InstallDependenciesRequest(info=info)))
    assert b"Creating virtual environment" in lines[0].stdout
    about = host.stub.About(language_pb2.AboutRequest(info=info))
    assert about.executable == str(host.project / "my-venv" / "bin" / "python")
    assert about.version.startswith("3.")


def test_a_virtual_environment_without_pulumi_is_told_so(host: RunningHost) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", host.project / "my-venv"], check=True)
    request = host.run_request("")
    request.info.options.update({"virtualenv": "my-venv"})
    assert "non-zero exit code: 1" in host.stub.Run(request).error
    host.process.terminate()
    output = host.process.stdout.read() if host.process.stdout else ""
    assert "The Pulumi SDK is not installed in the environment" in output
    assert "pulumi install" in output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"toolchain": "poetry"}, "toolchain: .* drives pip and uv, found poetry", id="toolchain"),
        pytest.param({"typechecker": "mypy"}, "typechecker: .* knows toolchain and virtualenv only", id="unknown"),
    ],
)
def test_an_option_that_cannot_be_followed_is_an_error(
    host: RunningHost, options: dict[str, str], message: str
) -> None:
    with pytest.raises(grpc.RpcError, match=message):
        host.stub.About(language_pb2.AboutRequest(info=host.info(**options)))


def test_handshake_replaces_the_engines_address(host: RunningHost) -> None:
    host.stub.Handshake(language_pb2.LanguageHandshakeRequest(engine_address="127.0.0.1:1"))
    response = host.run("import pulumi\npulumi.log.error('hello')\n")
    assert host.engine.errors == []
    assert response.error or response.bail


def test_two_programs_run_at_the_same_time(host: RunningHost) -> None:
    _sleeping, _pids = start_sleeping(host)
    finished = threading.Event()
    second = host.stub.Run.future(host.run_request("pass"))
    second.add_done_callback(lambda _: finished.set())
    assert finished.wait(20)


def test_the_version_is_the_sdks() -> None:
    environment = {**os.environ, "PULUMI_PYTHON_CMD": sys.executable}
    result = subprocess.run([LANGUAGE_HOST, "--version"], capture_output=True, text=True, env=environment, check=True)
    assert result.stdout.startswith("3.")


def test_a_python_without_pulumi_gives_one_line(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    environment = {"PATH": "/usr/bin:/bin", "PULUMI_PYTHON_CMD": str(tmp_path / "venv" / "bin" / "python")}
    result = subprocess.run([LANGUAGE_HOST], capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 1
    assert "has no package" in result.stderr
    assert "PULUMI_PYTHON_CMD" in result.stderr
    assert result.stderr.count("\n") == 1


def _children(pid: int) -> list[int]:
    """The living processes that have `pid` as parent."""
    result = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in result.stdout.splitlines() if "Z" not in line.split()[1]]
