"""Runs the Pulumi CLI to its end, whoever interrupts."""

import subprocess
from collections import deque
from collections.abc import Callable, Mapping

from tools.versions import ROOT


def run_pulumi(environment: Mapping[str, str], *arguments: str) -> int:
    """Run the CLI on this terminal; returns its exit code.

    Raises:
        KeyboardInterrupt: after the CLI has ended, where Ctrl-C reached it too.
    """
    process = subprocess.Popen(["pulumi", *arguments], cwd=ROOT, env=environment)
    return _to_the_end(process.wait)


def relay_pulumi(
    environment: Mapping[str, str], relay: Callable[[str], None], *arguments: str
) -> tuple[int, list[str]]:
    """Run the CLI with each line of its output handed to `relay`; returns its exit code and the last lines.

    Raises:
        KeyboardInterrupt: as above.
    """
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        ["pulumi", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:

        def read() -> int:
            for line in process.stdout or ():
                last.append(line.rstrip("\n"))
                relay(last[-1])
            return process.wait()

        return _to_the_end(read), list(last)


def _to_the_end(wait: Callable[[], int]) -> int:
    """Ctrl-C reaches the CLI by itself: it cancels what it can, and a second one ends it. This only waits."""
    interrupted = False
    while True:
        try:
            exit_code = wait()
        except KeyboardInterrupt:
            interrupted = True
            continue
        if interrupted:
            raise KeyboardInterrupt
        return exit_code
