"""The processes of a control plane: known by the pids that were recorded for them, and ended by pid."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_END_SECONDS = 10.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Process:
    """A recorded process. `owner` is the folder that its command line names: a recycled pid's does not."""

    name: str
    pid: int
    owner: Path

    @property
    def is_running(self) -> bool:
        """Whether the pid is still the process that was recorded. One that is ending has no command line any more."""
        return f"{self.owner}/" in _command_line(self.pid)


def recorded_processes(pid_files: Path, owner: Path) -> tuple[Process, ...]:
    """The processes that the files NAME.pid of a folder name; none when there is no such folder."""
    files = sorted(pid_files.glob("*.pid"))
    pids = ((file.stem, file.read_text(encoding="utf-8").strip()) for file in files)
    return tuple(Process(name, int(pid), owner) for name, pid in pids if pid.isdecimal())


def end_processes(processes: Iterable[Process]) -> None:
    """Kill those that still run and wait until they are gone. Without a grace: what they would save is thrown away.

    Raises:
        TimeoutError: one does not go.
    """
    running = [process for process in processes if process.is_running]
    for process in running:
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + _END_SECONDS
    while left := [process for process in running if not _has_ended(process.pid)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{left[0].name} (pid {left[0].pid}) does not end")
        time.sleep(_POLL_SECONDS)


_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "cmdline").exists()


def _command_line(pid: int) -> str:
    if _HAS_PROC:
        return _read(_PROC / str(pid) / "cmdline").replace("\0", " ")
    return _ps("command", pid)


def _has_ended(pid: int) -> bool:
    """Gone, or a zombie whose threads are all gone: the last of them closes the ports and files."""
    # The state follows the name of the program, which is in parentheses and may have any character.
    state = _read(_PROC / str(pid) / "stat").rpartition(")")[2] if _HAS_PROC else _ps("stat", pid)
    return not state.strip() or (state.strip()[0] in "ZX" and _threads(pid) <= 1)


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(_PROC / str(pid) / "task"))  # noqa: PTH208 - the names alone
    except OSError:
        return 0


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _ps(column: str, pid: int) -> str:
    command = ["ps", "-ww", "-o", f"{column}=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
