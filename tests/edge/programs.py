"""Programs that listen on loopback: started on free ports, ended by their ids."""

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.processes import wait_until

LOOPBACK = "127.0.0.1"
_START_SECONDS = 60
_STOP_SECONDS = 10


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str | Path], port: int, log: Path) -> Iterator[None]:
    """A program, once it listens on `port`; what it says goes to `log`."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            wait_until(lambda: process.poll() is not None or _listens(port), _START_SECONDS)
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert _listens(port), f"nothing listens after {_START_SECONDS} s"
            yield
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False
