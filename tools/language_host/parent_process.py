"""No process outlives the one that started it, however that one ends.

Polling works on every Unix and also when the parent is killed with SIGKILL. It uses the standard library only: the
children run it in whatever virtual environment they have.
"""

import os
import threading
import time
from collections.abc import Callable

_POLL_SECONDS = 0.5


def call_when_parent_ends(action: Callable[[], object], parent: int | None = None) -> None:
    """Call `action` once, from a thread, when the parent is no longer the process `parent` (by default today's)."""
    expected = os.getppid() if parent is None else parent

    def watch() -> None:
        while os.getppid() == expected:
            time.sleep(_POLL_SECONDS)
        action()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
