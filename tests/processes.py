"""What tests ask about processes, by their ids."""

import subprocess
import time
from collections.abc import Callable


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie that waits for its parent."""
    result = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return result.returncode == 0 and not result.stdout.startswith("Z")


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition comes true within the time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()
