"""The language host under the real Pulumi engine, with programs that have no resources."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.engine.cli import Ended, command, run_pulumi
from tests.processes import is_running, wait_until
from tools import toolchain
from tools.environment import pulumi_environment
from tools.toolchain import LANGUAGE_HOST, FoundTool, Toolchain

# The first run on a machine builds the CLI.
pytestmark = pytest.mark.timeout(1800)

COMMAND_SECONDS = 120

POLICY_PACK = """
from pulumi_policy import EnforcementLevel, PolicyPack, StackValidationPolicy

def validate(args, report):
    report(f"{len(args.resources)} resource")

PolicyPack("tiny-pack", policies=[StackValidationPolicy(
    name="always", description="always violated", validate=validate, enforcement_level=EnforcementLevel.MANDATORY)])
"""


class Project:
    """A Pulumi project in a folder, with its own state and the language host of this checkout."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def pulumi(self, *arguments: str) -> Ended:
        return run_pulumi(self.folder, self.environment, *arguments)

    def start_preview(self, output: int) -> subprocess.Popen[bytes]:
        """A preview that a test ends; what it says goes to `output`, as subprocess means it."""
        return subprocess.Popen(
            command("preview"), cwd=self.folder, env=self.environment, stdout=output, stderr=subprocess.STDOUT
        )

    def preview(self, program: str, *arguments: str) -> Ended:
        (self.folder / "__main__.py").write_text(program, encoding="utf-8")
        return self.pulumi("preview", *arguments)


@pytest.fixture(scope="module")
def cli() -> Toolchain:
    """The real CLI with this checkout's language host, whatever host is installed."""
    pulumi = toolchain.ensure(["pulumi"])
    host = FoundTool(LANGUAGE_HOST.name, LANGUAGE_HOST, "0.0.0", "checkout")
    return Toolchain((*pulumi.tools, host))


@pytest.fixture
def project(cli: Toolchain, tmp_path: Path) -> Project:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: tiny\nruntime: python\n", encoding="utf-8")
    project = Project(folder, {**os.environ, **pulumi_environment(tmp_path / "state", cli)})
    created = project.pulumi("stack", "init", "test")
    assert created.exit_code == 0, created.output
    return project


def test_a_preview_shows_the_programs_output_and_outputs(project: Project) -> None:
    result = project.preview("import pulumi\nprint('hello')\npulumi.export('answer', 6 * 7)\n")
    assert result.exit_code == 0, result.output
    assert "hello" in result.output
    assert "answer: 42" in result.output
    assert "warning" not in result.output


def test_an_exception_shows_the_users_file_and_line(project: Project) -> None:
    result = project.preview("def fail():\n    raise ValueError('boom')\n\nfail()\n")
    assert result.exit_code != 0
    assert f'File "{project.folder}/__main__.py", line 2, in fail' in result.output
    assert "ValueError: boom" in result.output
    assert "runpy" not in result.output
    assert "an unhandled error occurred" not in result.output


def test_an_exit_code_is_named(project: Project) -> None:
    result = project.preview("import sys\nsys.exit(3)\n")
    assert result.exit_code != 0
    assert "program exited with non-zero exit code: 3" in result.output


def test_a_run_error_is_one_message(project: Project) -> None:
    result = project.preview("import pulumi\nraise pulumi.RunError('no good')\n")
    assert result.exit_code != 0
    assert "error: no good" in result.output
    assert "Traceback" not in result.output


def test_a_policy_pack_judges_the_stack(project: Project) -> None:
    pack = project.folder / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\nversion: 1.0.0\n", encoding="utf-8")
    (pack / "__main__.py").write_text(POLICY_PACK, encoding="utf-8")
    result = project.preview("", "--policy-pack", str(pack))
    assert result.exit_code != 0
    assert "tiny-pack" in result.output
    assert "1 resource" in result.output


def test_a_broken_policy_pack_shows_its_traceback(project: Project) -> None:
    pack = project.folder / "pack"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\nversion: 1.0.0\n", encoding="utf-8")
    (pack / "__main__.py").write_text("raise ValueError('boom')\n", encoding="utf-8")
    result = project.preview("", "--policy-pack", str(pack))
    assert result.exit_code != 0
    assert "ValueError: boom" in result.output


def test_an_interrupt_ends_a_sleeping_program_and_its_children(project: Project) -> None:
    pid_file = project.folder / "pids"
    program = f"""
import os, subprocess, time
grandchild = subprocess.Popen(["sleep", "600"])
with open({str(pid_file)!r}, "w") as file:
    file.write(f"{{os.getppid()}} {{os.getpid()}} {{grandchild.pid}}\\n")
time.sleep(600)
"""
    (project.folder / "__main__.py").write_text(program, encoding="utf-8")
    process = project.start_preview(subprocess.PIPE)
    with process:
        pids = _read_pids(pid_file)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode != 0
    assert not [pid for pid in pids if is_running(pid)]


def test_killing_the_engine_leaves_no_orphans(project: Project) -> None:
    pid_file = project.folder / "pids"
    program = (
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(f'{{os.getppid()}} {{os.getpid()}}\\n')\ntime.sleep(600)"
    )
    (project.folder / "__main__.py").write_text(program, encoding="utf-8")
    process = project.start_preview(subprocess.DEVNULL)
    with process:
        pids = _read_pids(pid_file)
        process.kill()
    assert wait_until(lambda: not any(map(is_running, pids)), 10)


def _read_pids(file: Path) -> list[int]:
    assert wait_until(lambda: file.exists() and file.read_text().endswith("\n"), COMMAND_SECONDS)
    return [int(word) for word in file.read_text().split()]
