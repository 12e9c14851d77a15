"""Run a Python file, folder or module as `python` itself would, but never longer than the parent lives.

Usage: python run_child.py PARENT_PID (PATH | -m MODULE) [ARGUMENT...]
Started by path, in the project's own virtual environment: standard library only.
"""

import os
import runpy
import signal
import sys

# Started by path, Python finds what lies beside this file.
from parent_process import call_when_parent_ends  # type: ignore[import-not-found]


def main() -> None:
    _, parent, *target = sys.argv
    # The process leads its group: whatever it has started goes with it.
    call_when_parent_ends(lambda: os.killpg(os.getpgrp(), signal.SIGKILL), parent=int(parent))
    del sys.modules["parent_process"]
    if target[0] == "-m":
        sys.path[0] = os.getcwd()  # noqa: PTH109 - what `python -m` puts there
        sys.argv = target[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    del sys.path[0]
    sys.argv = target
    runpy.run_path(sys.argv[0], run_name="__main__")


main()
