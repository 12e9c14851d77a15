"""What the tools say to the person who runs them."""

import sys
from collections.abc import Callable
from typing import TypeAlias

Report: TypeAlias = Callable[[str], None]
"""Takes one line of progress."""


class ToolchainError(Exception):
    """The tools cannot be had. The message is for the user: what was found, what is needed, the smallest fix."""


def report_line(line: str) -> None:
    """Progress on standard output, at once even when that is a pipe."""
    print(line, flush=True)


def report_error_line(line: str) -> None:
    """Progress on standard error, where standard output is for the result."""
    print(line, file=sys.stderr, flush=True)
