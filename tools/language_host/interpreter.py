"""Which Python runs a project: `runtime.options` of Pulumi.yaml and PulumiPolicy.yaml, read like the official host."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pulumi.runtime.proto import language_pb2

_OPTIONS = ("toolchain", "virtualenv")
_LOCK_FILES = {"uv": "uv.lock", "poetry": "poetry.lock"}


class RuntimeOptionError(Exception):
    """A runtime option that cannot be followed; the message names the option and what is allowed."""


@dataclass(frozen=True)
class Interpreter:
    """A Python and the virtual environment that it belongs to, if the options name one. `toolchain` is pip or uv."""

    python: str
    virtual_environment: Path | None
    toolchain: str
    program_directory: Path

    @property
    def exists(self) -> bool:
        return self.virtual_environment is None or Path(self.python).is_file()

    def environment(self) -> dict[str, str]:
        """os.environ with the virtual environment activated."""
        if self.virtual_environment is None:
            return dict(os.environ)
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
        path = os.pathsep.join([str(Path(self.python).parent), os.environ.get("PATH", "")])
        return {**inherited, "VIRTUAL_ENV": str(self.virtual_environment), "PATH": path}

    def check(self) -> None:
        """Raises RuntimeOptionError when the named virtual environment is not there."""
        if not self.exists:
            raise RuntimeOptionError(
                f"runtime option virtualenv: {self.virtual_environment} is not a virtual environment;"
                " run `pulumi install` in the folder of the project or policy pack to make it"
            )

    def install(self) -> Iterator[bytes]:
        """Make the virtual environment and install the dependencies; yields lines of output.

        Raises:
            subprocess.CalledProcessError: a step fails.
        """
        if self.toolchain == "uv":
            environment = {**self.environment(), "UV_PROJECT_ENVIRONMENT": str(self.virtual_environment)}
            yield from _run(["uv", "sync"], self.program_directory, environment)
            return
        if not self.exists:
            yield f"Creating virtual environment {self.virtual_environment}\n".encode()
            yield from _run([_default_python(), "-m", "venv", str(self.virtual_environment)], self.program_directory)
        if (self.program_directory / "requirements.txt").is_file():
            command = [self.python, "-m", "pip", "install", "-r", "requirements.txt"]
            yield from _run(command, self.program_directory, self.environment())


def interpreter_of(info: language_pb2.ProgramInfo, is_plugin: bool = False) -> Interpreter:
    """The interpreter of a program, policy pack or (`is_plugin`) other plugin.

    Without a virtualenv option it is the one that runs this host, except that a plugin's own `venv` folder counts.

    Raises:
        RuntimeOptionError: an option that this host does not know or cannot follow.
    """
    options = dict(info.options.items())
    for name in options.keys() - set(_OPTIONS):
        raise RuntimeOptionError(
            f"runtime option {name}: this small language host knows {' and '.join(_OPTIONS)} only;"
            " remove it, or install the official Pulumi distribution"
        )
    for name, value in options.items():
        if not isinstance(value, str):
            raise RuntimeOptionError(f"runtime option {name}: a string is needed, found {value!r}")
    root, program = Path(info.root_directory), Path(info.program_directory)
    toolchain = str(options.get("toolchain") or _detected_toolchain(program))
    if toolchain not in ("pip", "uv"):
        raise RuntimeOptionError(
            f"runtime option toolchain: this small language host drives pip and uv, found {toolchain};"
            " choose one, or install the official Pulumi distribution"
        )
    virtual_environment = root / str(options["virtualenv"]) if options.get("virtualenv") else None
    if virtual_environment is None and toolchain == "uv":
        virtual_environment = (_folder_with(program, "uv.lock") or program) / ".venv"
    if virtual_environment is None and is_plugin and (root / "venv" / "bin" / "python").is_file():
        virtual_environment = root / "venv"
    python = str(virtual_environment / "bin" / "python") if virtual_environment else _default_python()
    return Interpreter(python, virtual_environment, toolchain, program)


def _default_python() -> str:
    return shutil.which(os.environ.get("PULUMI_PYTHON_CMD", "")) or sys.executable


def _detected_toolchain(program: Path) -> str:
    return next((name for name, lock in _LOCK_FILES.items() if _folder_with(program, lock)), "pip")


def _folder_with(start: Path, file: str) -> Path | None:
    return next((folder for folder in (start, *start.parents) if (folder / file).is_file()), None)


def _run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> Iterator[bytes]:
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        yield from process.stdout or ()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
