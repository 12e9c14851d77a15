"""Python processes that the language host starts: each leads a process group, and the whole group ends with it."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from tools.language_host.interpreter import Interpreter

# The official host's wait between interrupting a program and killing it; also the engine's for the host.
INTERRUPT_GRACE_SECONDS = 5
_RUN_CHILD = Path(__file__).with_name("run_child.py")


class Child:
    """A running `python TARGET`, where target is a file, a folder or -m and a module, and then arguments.

    Without `capture` it writes to the host's own standard output and error, which the engine shows line by line.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        target: Sequence[str],
        directory: str,
        variables: Mapping[str, str],
        capture: bool = False,
    ) -> None:
        stream = subprocess.PIPE if capture else None
        self._process = subprocess.Popen(
            # Unbuffered, so that the two streams keep their order and nothing is lost at a kill.
            [interpreter.python, "-u", str(_RUN_CHILD), str(os.getpid()), *target],
            cwd=directory,
            env={**interpreter.environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            process_group=0,
        )

    def wait(self) -> int:
        """The exit code, -1 for a signal as Go has it. What the child left running in its group is ended."""
        code = self._process.wait()
        self._signal_group(signal.SIGKILL)
        return max(code, -1)

    def interrupt(self) -> None:
        """SIGINT now and SIGKILL after the grace period; does not wait."""
        if self._process.poll() is not None:
            return
        self._signal_group(signal.SIGINT)
        timer = threading.Timer(INTERRUPT_GRACE_SECONDS, self.kill)
        timer.daemon = True
        timer.start()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._signal_group(signal.SIGKILL)

    def output(self) -> Iterator[tuple[str, bytes]]:
        """The lines of a captured child as ("stdout" or "stderr", line), as they come, until both streams end."""
        lines: SimpleQueue[tuple[str, bytes] | None] = SimpleQueue()
        streams = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        for name, stream in streams.items():
            threading.Thread(target=_pump, args=(name, stream, lines), daemon=True).start()
        for _ in streams:
            yield from iter(lines.get, None)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _pump(name: str, stream: IO[bytes] | None, lines: "SimpleQueue[tuple[str, bytes] | None]") -> None:
    if stream is not None:
        with stream:
            for line in stream:
                lines.put((name, line))
    lines.put(None)
