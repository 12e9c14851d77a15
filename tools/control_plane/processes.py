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
        """Whether the pid is still the process that was recorded. A zombie is not: it has no command line left."""
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
    while left := [process for process in running if process.is_running]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{left[0].name} (pid {left[0].pid}) does not end")
        time.sleep(_POLL_SECONDS)


def _command_line(pid: int) -> str:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    result = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return result.stdout
